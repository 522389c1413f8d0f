// The target of a token whose loss does not count.
#pragma once

#include <cstdint>

namespace trireme {

// Stands for a token id where the next token is not to be learned. Its loss and the gradient of its
// logits are 0, and means leave it out.
inline constexpr std::int32_t kIgnoredTarget = -1;

// Returns how many targets [count] are not ignored.
inline std::int64_t counted_targets(const std::int32_t* targets, std::int64_t count) {
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    counted += targets[i] == kIgnoredTarget ? 0 : 1;
  }
  return counted;
}

}  // namespace trireme
