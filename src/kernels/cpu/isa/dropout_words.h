// Computes random words for dropout at many counters at once. The loops of philox.h are
// interchanged here, so that the compiler vectorizes over the counters. Pure functions.
#pragma once

#include "src/base/philox.h"
#include "src/kernels/cpu/isa/vector.h"

namespace trireme::cpu::TRIREME_ISA {

// Sets words[4 j + w] to word w of Philox at counter {start[0], start[1], start[2], start[3] + j}.
template <int counters>
void make_words(const PhiloxCounter& start, PhiloxKey key, std::uint32_t* words) {
  std::uint32_t c[4][counters];
  for (std::uint32_t j = 0; j < counters; ++j) {
    c[0][j] = start[0];
    c[1][j] = start[1];
    c[2][j] = start[2];
    c[3][j] = start[3] + j;
  }
  for (int round = 0; round < 10; ++round) {
    for (int j = 0; j < counters; ++j) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0][j];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2][j];
      c[0][j] = static_cast<std::uint32_t>(b >> 32) ^ c[1][j] ^ key[0];
      c[1][j] = static_cast<std::uint32_t>(b);
      c[2][j] = static_cast<std::uint32_t>(a >> 32) ^ c[3][j] ^ key[1];
      c[3][j] = static_cast<std::uint32_t>(a);
    }
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  for (int j = 0; j < counters; ++j) {
    for (int w = 0; w < 4; ++w) {
      words[4 * j + w] = c[w][j];
    }
  }
}

// Returns the least value of word / 2^8 that is kept, so that the comparison equals
// uniform_float(word) >= probability.
TRIREME_INLINE std::uint32_t least_kept(float probability) {
  return static_cast<std::uint32_t>(__builtin_ceil(static_cast<double>(probability) * 0x1p24));
}

// Returns a mask of the elements that are kept, for kLanes words.
TRIREME_INLINE Ints keeps(const std::uint32_t* words, std::uint32_t least) {
  Words drawn;
  std::memcpy(&drawn, words, sizeof drawn);
  return reinterpret_cast<Ints>((drawn >> 8) >= least);
}

}  // namespace trireme::cpu::TRIREME_ISA
