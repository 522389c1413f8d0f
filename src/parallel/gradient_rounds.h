// GradientRounds: which micro-batches of a step each data-parallel rank computes, and how far it
// sums them before the ranks meet. In every round each rank takes `each` neighbouring micro-batches
// and sums them, then the ranks' sums are reduced, then those of the rounds are added. Pure values.
//
//   8 micro-batches on 2 ranks     ZeRO 0, 1: one round of 4       ZeRO 2, 3: four rounds of 1
//                                  0 0 0 0 1 1 1 1                 0 1 0 1 0 1 0 1
//
// All three sums are nodes of the canonical tree (reduction_tree.h), as long as the number of
// rounds and that of ranks are powers of two: both ways give the same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "src/parallel/reproducibility.h"

namespace trireme {

struct GradientRounds {
  std::int64_t rounds = 1;
  std::int64_t each = 1;
  // The numbers of a rank's micro-batches within the global batch, rising.
  std::vector<std::int64_t> numbers(int rank, int ranks) const;
};

// level: of ZeRO. From 2 on as many rounds as `how` allows, so that a rank need not keep whole
// gradients; before, one. ConfigError where the ranks can't share the micro-batches.
GradientRounds gradient_rounds(std::int64_t micro_batches, int ranks, int level,
                               Reproducibility how);

}  // namespace trireme
