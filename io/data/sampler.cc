#include "io/data/sampler.h"

#include <algorithm>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kShuffleBlockBytes = std::int64_t{8} << 20;
constexpr std::int64_t kWindowBlocks = 16;

std::uint64_t key_of(std::uint64_t seed, std::int64_t epoch) {
  return mix64(mix64(seed) ^ static_cast<std::uint64_t>(epoch));
}

std::int64_t blocks_of(std::int64_t samples, std::int64_t block_samples) {
  return samples / block_samples + (samples % block_samples != 0 ? 1 : 0);
}

}  // namespace

Shuffle parse_shuffle(std::string_view word) {
  if (word == "none") {
    return Shuffle::none;
  }
  if (word == "block") {
    return Shuffle::block;
  }
  if (word == "global") {
    return Shuffle::global;
  }
  throw ConfigError(fmt::format("unknown shuffle '{}': expected none, block or global", word));
}

Sampler::Sampler(std::int64_t samples, std::int64_t block_samples, Shuffle shuffle,
                 std::uint64_t seed)
    : samples_(samples), block_samples_(block_samples), shuffle_(shuffle), seed_(seed) {
  check(samples > 0 && block_samples > 0,
        "the numbers of samples and of samples per block are positive");
}

std::int64_t Sampler::at(std::int64_t epoch, std::int64_t position) const {
  return EpochOrder(*this, epoch)(position);
}

EpochOrder::EpochOrder(const Sampler& sampler, std::int64_t epoch)
    : sampler_(sampler),
      epoch_(epoch),
      key_(key_of(sampler.seed_, epoch)),
      all_(sampler.shuffle_ == Shuffle::block ? blocks_of(sampler.samples_, sampler.block_samples_)
                                              : sampler.samples_,
           key_) {
  check(epoch >= 0, "an epoch is not negative");
  if (sampler.shuffle_ == Shuffle::block) {
    const std::int64_t blocks = blocks_of(sampler.samples_, sampler.block_samples_);
    missing_ = blocks * sampler.block_samples_ - sampler.samples_;
    // If the last block is short, positions after its new place are shifted by what it lacks.
    short_end_ = (all_.inverse(blocks - 1) + 1) * sampler.block_samples_ - missing_;
  }
}

std::int64_t EpochOrder::operator()(std::int64_t position) {
  check(position >= 0 && position < sampler_.samples_, "a position lies within its epoch");
  switch (sampler_.shuffle_) {
    case Shuffle::none:
      return position;
    case Shuffle::global:
      return all_(position);
    case Shuffle::block:
      return in_blocks(in_window(position));
  }
  return position;
}

std::int64_t EpochOrder::in_window(std::int64_t position) {
  const std::int64_t window = kWindowBlocks * sampler_.block_samples_;
  const std::int64_t number = position / window;
  const std::int64_t first = number * window;
  if (number != window_) {
    const std::uint64_t key = mix64(key_ ^ mix64(static_cast<std::uint64_t>(number) + 1));
    in_window_ = FeistelPermutation(std::min(window, sampler_.samples_ - first), key);
    window_ = number;
  }
  return first + in_window_(position - first);
}

std::int64_t EpochOrder::in_blocks(std::int64_t position) const {
  const std::int64_t block = sampler_.block_samples_;
  const std::int64_t shifted = position < short_end_ ? position : position + missing_;
  return all_(shifted / block) * block + shifted % block;
}

std::int64_t shuffle_block_samples(std::int64_t sequence, int token_bytes) {
  return std::max<std::int64_t>(kShuffleBlockBytes / (sequence * token_bytes), 1);
}

}  // namespace trireme
