// What the kernels of norms have in common, forward (norms.cu) and backward (norm_backward.cu).
#pragma once

#include <algorithm>
#include <cstdint>

namespace trireme::cuda {

inline constexpr int kMostNormThreads = 256;

// Returns how many threads take a row of that many elements, kCount at a time.
inline unsigned norm_threads(std::int64_t channels, int count) {
  const std::int64_t accesses = (channels + count - 1) / count;
  return static_cast<unsigned>(std::min<std::int64_t>(kMostNormThreads, (accesses + 31) / 32 * 32));
}

}  // namespace trireme::cuda
