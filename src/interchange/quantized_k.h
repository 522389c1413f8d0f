// One block of ggml's type Q4_K: 256 numbers in 8 sub-blocks of 32. Pure functions, for any thread.
//
//   byte 0   f16 d
//        2   f16 dmin
//        4   j = 0..3: scale j      | high 2 bits of scale j + 4 << 6
//        8   j = 0..3: min j        | high 2 bits of min j + 4 << 6
//       12   j = 0..3: low 4 bits of scale j + 4 | low 4 bits of min j + 4 << 4
//       16   p = 0..3, i = 0..31: level 64 p + i | level 64 p + 32 + i << 4
//
//   x = (d scale) level - (dmin min)       scale and min from 0 to 63, level from 0 to 15
//
// d and dmin are the largest factors of the levels and the largest subtrahends of the 8 sub-blocks,
// over 63. Those of a sub-block minimize the sum of w (factor level - subtrahend - x)^2, with the
// weights w = |x| + sqrt(mean of x^2), over several ways to round its numbers to levels, as in
// ggml's own quantization.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trireme {

inline constexpr std::int64_t kQ4KElements = 256;
inline constexpr std::int64_t kQ4KBytes = 144;

// x: [kQ4KElements], finite; bytes: [kQ4KBytes].
void quantize_q4_k(const float* x, std::byte* to);
void dequantize_q4_k(const std::byte* from, float* x);

}  // namespace trireme
