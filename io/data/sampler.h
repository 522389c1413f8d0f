// Sampler: which sample of the dataset is the n-th of the run: a pure function of (seed, n), in
// constant memory. The number of samples consumed is therefore the whole state of a run's data, and
// does not depend on ranks. Every epoch visits every sample once.
//
//   none     in order
//   global   one permutation of all samples: the best mixing, a read at random each
//   block    blocks of consecutive samples (8 MiB) change places, then samples change places within
//            windows of 16 such blocks: mostly sequential reads
//
//   position in epoch --(within its window)--> position --(its block's place)--> sample
//   |<----- window ----->|<----- window ----->|..|      | b7 | b2 | b9 | short | b0 | ...
#pragma once

#include <cstdint>
#include <string_view>

#include "io/data/feistel.h"

namespace trireme {

enum class Shuffle { none, block, global };
// ConfigError for any other word.
Shuffle parse_shuffle(std::string_view word);

class Sampler {
 public:
  // samples: of an epoch; block_samples: consecutive samples that stay together.
  Sampler(std::int64_t samples, std::int64_t block_samples, Shuffle shuffle, std::uint64_t seed);

  std::int64_t samples() const { return samples_; }
  // The sample that stands at global number n = 0, 1, ... of the run, through all epochs.
  std::int64_t operator()(std::int64_t n) const { return at(n / samples_, n % samples_); }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const;

 private:
  friend class EpochOrder;
  std::int64_t samples_;
  std::int64_t block_samples_;
  Shuffle shuffle_;
  std::uint64_t seed_;
};

// One epoch of a sampler, to be asked for many positions: keeps the keys that neighbours share.
class EpochOrder {
 public:
  EpochOrder(const Sampler& sampler, std::int64_t epoch);

  std::int64_t epoch() const { return epoch_; }
  // The sample at a position of [0, samples).
  std::int64_t operator()(std::int64_t position);

 private:
  std::int64_t in_window(std::int64_t position);
  std::int64_t in_blocks(std::int64_t position) const;

  Sampler sampler_;
  std::int64_t epoch_;
  std::uint64_t key_;
  FeistelPermutation all_;      // of the samples (global) or of the blocks
  std::int64_t short_end_ = 0;  // the position behind the short last block, in its place
  std::int64_t missing_ = 0;    // samples that it is short of
  std::int64_t window_ = -1;    // the window that in_window_ is of
  FeistelPermutation in_window_{1, 0};
};

// Samples in a block of about 8 MiB of stored tokens.
std::int64_t shuffle_block_samples(std::int64_t sequence, int token_bytes);

}  // namespace trireme
