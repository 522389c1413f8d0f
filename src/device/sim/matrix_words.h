// The matrix instructions of a warp. All of its lanes must take part. Sums are taken in fp32 in
// ascending order of k; a tensor core may add in another order and rounds differently.
#pragma once

#include <cstdint>

namespace sim {

// mma.sync.m16n8k16; T: __nv_bfloat16 or __half.
template <class T>
void multiply_fragments(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);

// ldmatrix.x4 of 2-byte numbers.
void load_tiles(std::uint32_t (&r)[4], const void* row, bool transposed);

}  // namespace sim
