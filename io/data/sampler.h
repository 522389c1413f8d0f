// Sampler says which sample of the dataset is the n-th of the run. It is a pure function of (seed,
// n) in constant memory, so the number of samples consumed is the whole data state of a run,
// whatever its ranks. Every epoch visits every sample once.
//
//   none     keeps the dataset's order
//   global   applies one permutation to all samples: best mixing, one random read per sample
//   block    permutes blocks of consecutive samples (8 MiB), then samples within windows of 16 such
//            blocks: mostly sequential reads
//
//   position in epoch --(within its window)--> position --(its block's place)--> sample
//   |<----- window ----->|<----- window ----->|..|      | b7 | b2 | b9 | short | b0 | ...
#pragma once

#include <cstdint>
#include <string_view>

#include "io/data/feistel_permutation.h"

namespace trireme {

enum class Shuffle { none, block, global };
// Throws ConfigError for any other word.
Shuffle parse_shuffle(std::string_view word);

class Sampler {
 public:
  // samples: number per epoch. block_samples: number of consecutive samples that stay together.
  Sampler(std::int64_t samples, std::int64_t block_samples, Shuffle shuffle, std::uint64_t seed);

  std::int64_t samples() const { return samples_; }
  // Returns the sample with global number n = 0, 1, ... in the run, over all epochs.
  std::int64_t operator()(std::int64_t n) const { return at(n / samples_, n % samples_); }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const;

 private:
  friend class EpochOrder;
  std::int64_t samples_;
  std::int64_t block_samples_;
  Shuffle shuffle_;
  std::uint64_t seed_;
};

// EpochOrder is one epoch of a sampler, for looking up many positions: it keeps the keys that
// neighbouring positions share.
class EpochOrder {
 public:
  EpochOrder(const Sampler& sampler, std::int64_t epoch);

  std::int64_t epoch() const { return epoch_; }
  // Returns the sample at a position in [0, samples).
  std::int64_t operator()(std::int64_t position);

 private:
  std::int64_t in_window(std::int64_t position);
  std::int64_t in_blocks(std::int64_t position) const;

  Sampler sampler_;
  std::int64_t epoch_;
  std::uint64_t key_;
  FeistelPermutation all_;      // permutes samples (global) or blocks (block)
  std::int64_t short_end_ = 0;  // permuted position at which the short last block ends
  std::int64_t missing_ = 0;    // samples that the last block has fewer than the others
  std::int64_t window_ = -1;    // number of the window that in_window_ permutes; -1: none
  FeistelPermutation in_window_{1, 0};
};

// Returns the number of samples in about 8 MiB of stored tokens, at least 1.
std::int64_t shuffle_block_samples(std::int64_t sequence, int token_bytes);

}  // namespace trireme
