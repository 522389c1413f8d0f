// Tiles for attention's kernels that multiply by warpgroups (cuda_warpgroup.h). A tile holds rows
// of kD channels of bf16 or f16 ("T"): one swizzled tile of 64 channels behind another.
#pragma once

#include <cuda_warpgroup.h>

#include "src/kernels/cuda/attention_tiles.h"

namespace trireme::cuda {

// A block is one warpgroup, which computes 64 rows of a result. Several blocks share a
// multiprocessor: while one multiplies, others compute weights.
inline constexpr int kGroupRows = 64;
inline constexpr int kGroupThreads = 128;
inline constexpr int kTileColumns = 64;  // of a swizzled tile

// The bytes of a tile of kRows rows.
template <int kD, int kRows>
inline constexpr int kTileBytes = kRows* kD * 2;

// Returns the place of a chunk of eight channels in a tile of kRows rows, in bytes.
template <int kRows>
__device__ inline int place_in_tile(int row, int chunk) {
  constexpr int kChunks = kTileColumns / 8;
  return chunk / kChunks * kRows * kSwizzledRow + swizzled_chunk(row, chunk % kChunks);
}

// Starts copying kRows rows of kD channels; rows from `rows` on become zero. Nobody may still read
// the tile.
template <int kD, int kRows, class T>
__device__ inline void start_tile(unsigned char* tile, const T* from, std::int64_t stride,
                                  int rows) {
  constexpr int kPerRow = kD / 8;
  constexpr int kStep = kGroupThreads / kPerRow;  // rows that the block copies at once
  static_assert(kStep % 8 == 0 && kRows % kStep == 0,
                "a thread has one place in all swizzled rows");
  const int first_row = static_cast<int>(threadIdx.x) / kPerRow;
  const int chunk = static_cast<int>(threadIdx.x) % kPerRow;
  unsigned char* const to = tile + place_in_tile<kRows>(first_row, chunk);
  from += first_row * stride + chunk * 8;
#pragma unroll
  for (int row = 0; row < kRows; row += kStep) {
    const bool there = first_row + row < rows;
    copy_async_16_or_zero(to + row * kSwizzledRow, from + row * stride, there);
  }
}

// Queues x[64, kColumns] = a[64, kD] b[kColumns, kD]^T.
template <class T, int kD, int kColumns>
__device__ inline void queue_product_by_rows(float (&x)[kColumns / 8][4], const unsigned char* a,
                                             const unsigned char* b) {
#pragma unroll
  for (int k = 0; k < kD; k += 16) {
    const auto step = static_cast<std::uint32_t>(k % kTileColumns * 2);
    const TileOperand left = tile_operand(a + k / kTileColumns * kGroupRows * kSwizzledRow) + step;
    const TileOperand right = tile_operand(b + k / kTileColumns * kColumns * kSwizzledRow) + step;
    WarpgroupProduct<T, kColumns>::template of_tiles<false>(x, left, right, k > 0 ? 1 : 0);
  }
}

// Queues x[64, kD] += p[64, kRows] b[kRows, kD].
template <class T, int kD, int kRows>
__device__ inline void queue_product_by_columns(float (&x)[kD / 8][4],
                                                const std::uint32_t (&p)[kRows / 16][4],
                                                const unsigned char* b) {
  const TileOperand all = tile_operand(b, kRows * kSwizzledRow);
#pragma unroll
  for (int k = 0; k < kRows / 16; ++k) {
    WarpgroupProduct<T, kD>::template of_fragment<true>(
        x, p[k], all + static_cast<std::uint32_t>(k * 16 * kSwizzledRow), 1);
  }
}

// Rounds a result to T, as fragments of a left operand.
template <class T, int kColumns>
__device__ inline void round_to_fragments(std::uint32_t (&p)[kColumns / 16][4],
                                          const float (&x)[kColumns / 8][4]) {
#pragma unroll
  for (int k = 0; k < kColumns / 16; ++k) {
    const auto& left = x[2 * k];
    const auto& right = x[2 * k + 1];
    p[k][0] = pack<T>(left[0], left[1]);
    p[k][1] = pack<T>(left[2], left[3]);
    p[k][2] = pack<T>(right[0], right[1]);
    p[k][3] = pack<T>(right[2], right[3]);
  }
}

// Stores the warp's 16 rows of results, each row multiplied by its factor, through its rows of a
// tile of 64 rows, which only this warp uses since the last barrier. to: the warp's first row. Rows
// from `rows` on are not stored.
template <int kD, class T>
__device__ inline void store_tile_rows(T* to, std::int64_t stride, int rows, unsigned char* tile,
                                       const float (&x)[kD / 8][4], const float (&factor)[2]) {
  const int first_row = static_cast<int>(threadIdx.x / kWarp) * 16;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      unsigned char* const chunk =
          tile + place_in_tile<kGroupRows>(first_row + lane_row() + 8 * half, n);
      *reinterpret_cast<std::uint32_t*>(chunk + lane_column() * 2) =
          pack<T>(x[n][2 * half] * factor[half], x[n][2 * half + 1] * factor[half]);
    }
  }
  __syncwarp();
  constexpr int kPerRow = kD / 8;
  for (int i = static_cast<int>(threadIdx.x % kWarp); i < 16 * kPerRow; i += kWarp) {
    const int row = i / kPerRow;
    const int chunk = i % kPerRow;
    if (row < rows) {
      *reinterpret_cast<Row8<T>*>(to + row * stride + chunk * 8) =
          *reinterpret_cast<const Row8<T>*>(tile +
                                            place_in_tile<kGroupRows>(first_row + row, chunk));
    }
  }
}

}  // namespace trireme::cuda
