#include "io/data/sampler.h"

#include <algorithm>

#include "io/data/feistel.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{8} << 20;
constexpr std::int64_t kWindowBlocks = 16;

std::uint64_t key_of(std::uint64_t seed, std::int64_t epoch) {
  return mix64(mix64(seed) ^ static_cast<std::uint64_t>(epoch));
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
  throw ConfigError(fmt::format("shuffle '{}': none, block or global", word));
}

Sampler::Sampler(std::int64_t samples, std::int64_t block_samples, Shuffle shuffle,
                 std::uint64_t seed)
    : samples_(samples), block_samples_(block_samples), shuffle_(shuffle), seed_(seed) {
  check(samples > 0 && block_samples > 0, "a sampler has samples, in blocks");
}

std::int64_t Sampler::at(std::int64_t epoch, std::int64_t position) const {
  check(epoch >= 0 && position >= 0 && position < samples_, "a position lies within its epoch");
  const std::uint64_t key = key_of(seed_, epoch);
  switch (shuffle_) {
    case Shuffle::none:
      return position;
    case Shuffle::global:
      return FeistelPermutation(samples_, key)(position);
    case Shuffle::block:
      return in_blocks(key, in_window(key, position));
  }
  return position;
}

std::int64_t Sampler::in_window(std::uint64_t key, std::int64_t position) const {
  const std::int64_t window = kWindowBlocks * block_samples_;
  const std::int64_t number = position / window;
  const std::int64_t first = number * window;
  const std::int64_t length = std::min(window, samples_ - first);
  const std::uint64_t window_key = mix64(key ^ mix64(static_cast<std::uint64_t>(number) + 1));
  return first + FeistelPermutation(length, window_key)(position - first);
}

std::int64_t Sampler::in_blocks(std::uint64_t key, std::int64_t position) const {
  const std::int64_t blocks = (samples_ + block_samples_ - 1) / block_samples_;
  const std::int64_t short_samples = samples_ - (blocks - 1) * block_samples_;
  const FeistelPermutation place(blocks, key);
  // The last block may be short; what lies behind the place it got is shifted.
  const std::int64_t short_place = place.inverse(blocks - 1);
  const std::int64_t short_first = short_place * block_samples_;
  const std::int64_t missing =
      position < short_first + short_samples ? 0 : block_samples_ - short_samples;
  const std::int64_t shifted = position + missing;
  return place(shifted / block_samples_) * block_samples_ + shifted % block_samples_;
}

std::int64_t shuffle_block_samples(std::int64_t sequence, int token_bytes) {
  return std::max<std::int64_t>(kBlockBytes / (sequence * token_bytes), 1);
}

}  // namespace trireme
