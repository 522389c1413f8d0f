// GradientRounds says which micro-batches of a step each data-parallel rank computes, and how many
// of them it sums before the ranks reduce. In every round, each rank takes `each` neighbouring
// micro-batches and sums them; the ranks' sums are reduced, and added to those of earlier rounds.
// Plain values and pure functions.
//
//   8 micro-batches on 2 ranks     ZeRO 0, 1: one round of 4       ZeRO 2, 3: four rounds of 1
//                                  0 0 0 0 1 1 1 1                 0 1 0 1 0 1 0 1
//
// All three sums are nodes of the canonical tree (reduction_tree.h) as long as the numbers of
// rounds and of ranks are powers of two, so that both ways give the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "src/parallel/reproducibility.h"

namespace trireme {

struct GradientRounds {
  std::int64_t rounds = 1;
  std::int64_t each = 1;
  // Returns the numbers of a rank's micro-batches within the global batch, in the order of the
  // rounds, which is rising.
  std::vector<std::int64_t> numbers(int rank, int ranks) const;
};

// level: of ZeRO. From level 2 on, there are as many rounds as `how` allows, so that a rank need
// not keep whole gradients; below, there is one. Throws ConfigError if the ranks cannot divide the
// micro-batches.
GradientRounds gradient_rounds(std::int64_t micro_batches, int ranks, int level,
                               Reproducibility how);

// Returns the most partial sums of `count` summands that wait at a time, including the one that a
// new summand is added to: one for each level of the tree if `how` is elastic, else one.
std::int64_t sums_kept(std::int64_t count, Reproducibility how);

}  // namespace trireme
