// Divides sums over rows into blocks: kernels sum within each block first, then over the blocks in
// order. The blocks depend on the shape alone, so the bits do not depend on the number of threads.
#pragma once

#include "src/kernels/cpu/isa/loops.h"

namespace trireme::cpu::TRIREME_ISA {

// Returns the rows per block, such that there are at most 128 blocks, which is enough work for as
// many threads.
inline std::int64_t rows_per_block(std::int64_t rows, std::int64_t least) {
  const std::int64_t fair = (rows + 127) / 128;
  return fair > least ? fair : least;
}

// Sets sums[C] to the sum over the blocks of parts[blocks, stride].
inline void add_blocks(const Stream& stream, std::int64_t blocks, std::int64_t stride,
                       std::int64_t channels, const float* parts, float* sums) {
  each_range(stream, channels, kLanes, blocks * channels,
             [=](std::int64_t first, std::int64_t last) {
               each_vector(last - first, [=](std::int64_t i, auto part) {
                 Floats sum{};
                 for (std::int64_t b = 0; b < blocks; ++b) {
                   sum += load(parts + b * stride + first + i, part);
                 }
                 store(sums + first + i, sum, part);
               });
             });
}

}  // namespace trireme::cpu::TRIREME_ISA
