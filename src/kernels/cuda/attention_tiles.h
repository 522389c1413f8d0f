// Products of tiles in shared memory on the matrix units, for attention. A tile in shared memory is
// rows of kD channels of bf16 or f16 ("T"), padded so that ldmatrix meets no bank conflicts. A warp
// holds kTiles times 16 rows of a result, as mma's accumulators: the element x[tile][n][2 * half +
// j] of a lane is in row 16 * tile + lane / 4 + 8 * half and column 8 * n + lane % 4 * 2 + j.
#pragma once

#include "src/kernels/cuda/attention.h"
#include "src/kernels/cuda/block_sums.h"

namespace trireme::cuda {

inline constexpr int kRowWarps = 4;  // warps that divide the rows of a block
inline constexpr float kLog2E = 1.4426950408889634F;

// The 16-row tiles of a warp: two where registers suffice, since each load from shared memory then
// feeds twice as many products.
template <int kD, bool kDropout, bool kAlibi>
inline constexpr int kRowTiles = kD <= 64 && !kDropout && !kAlibi ? 2 : 1;

template <int kD>
inline constexpr int kPitch = kD + 8;

template <class T>
using Row8 = Chunk<T, 8>;

__device__ inline int lane_row() { return static_cast<int>(threadIdx.x % kWarp) / 4; }
__device__ inline int lane_column() { return static_cast<int>(threadIdx.x % 4) * 2; }

// Starts copying kRows rows of head_dim elements; rows from `rows` on and channels from head_dim on
// become zero. Nobody may still read the tile. The copies can be read after wait_copies() and a
// barrier.
template <int kD, int kRows, class T>
__device__ inline void start_rows(T* tile, const T* from, std::int64_t stride, int rows,
                                  int head_dim) {
  constexpr int kPerRow = kD / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kPerRow;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / kPerRow;
    const int column = i % kPerRow * 8;
    T* const to = tile + row * kPitch<kD> + column;
    if (row < rows && column < head_dim) {
      copy_async_16(to, from + row * stride + column);
    } else {
      *reinterpret_cast<Row8<T>*>(to) = Row8<T>{};
    }
  }
}

// Loads the 16x16 fragment of the rows a.. as mma's first operand.
template <int kD, class T>
__device__ inline void load_fragment(std::uint32_t (&fragment)[4], const T* a, int channel) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  ldmatrix(fragment, a + lane % 16 * kPitch<kD> + lane / 16 * 8 + channel);
}

// x[16 kTiles, kColumns] += a[16 kTiles, 16 channels] b[kColumns, 16 channels]^T, from that channel
// on. Each fragment of b is loaded once for all tiles of rows.
template <int kD, int kColumns, int kTiles, class T>
__device__ inline void multiply_channels(float (&x)[kTiles][kColumns / 8][4],
                                         const std::uint32_t (&fragments)[kTiles][4], const T* b,
                                         int channel) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const T* const row = b + (lane / 16 * 8 + lane % 8) * kPitch<kD> + lane / 8 % 2 * 8 + channel;
#pragma unroll
  for (int n = 0; n < kColumns / 8; n += 2) {
    std::uint32_t r[4];
    ldmatrix(r, row + n * 8 * kPitch<kD>);
    const std::uint32_t left[2] = {r[0], r[1]};
    const std::uint32_t right[2] = {r[2], r[3]};
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      mma<T>(x[tile][n], fragments[tile], left);
      mma<T>(x[tile][n + 1], fragments[tile], right);
    }
  }
}

// The fragments of a warp's rows, which are loaded once and multiplied by many tiles.
template <int kD, int kTiles>
struct KeptRows {
  std::uint32_t fragments[kD / 16][kTiles][4];

  template <class T>
  __device__ explicit KeptRows(const T* a) {
#pragma unroll
    for (int i = 0; i < kD / 16; ++i) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        load_fragment<kD>(fragments[i][tile], a + tile * 16 * kPitch<kD>, 16 * i);
      }
    }
  }
};

// The same interface for rows that stay in shared memory, because registers do not suffice.
template <int kD, int kTiles, class T>
struct StoredRows {
  const T* a;
  __device__ explicit StoredRows(const T* first) : a(first) {}
};

template <int kD, int kColumns, int kTiles, class T>
__device__ inline void multiply_by_rows(float (&x)[kTiles][kColumns / 8][4],
                                        const KeptRows<kD, kTiles>& a, const T* b) {
#pragma unroll
  for (int i = 0; i < kD / 16; ++i) {
    multiply_channels<kD, kColumns>(x, a.fragments[i], b, 16 * i);
  }
}

// x[16 kTiles, kColumns] += a[16 kTiles, kD] b[kColumns, kD]^T.
template <int kD, int kColumns, int kTiles, class T>
__device__ inline void multiply_by_rows(float (&x)[kTiles][kColumns / 8][4], const T* a,
                                        const T* b) {
#pragma unroll
  for (int channel = 0; channel < kD; channel += 16) {
    std::uint32_t fragments[kTiles][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      load_fragment<kD>(fragments[tile], a + tile * 16 * kPitch<kD>, channel);
    }
    multiply_channels<kD, kColumns>(x, fragments, b, channel);
  }
}

template <int kD, int kColumns, int kTiles, class T>
__device__ inline void multiply_by_rows(float (&x)[kTiles][kColumns / 8][4],
                                        const StoredRows<kD, kTiles, T>& a, const T* b) {
  multiply_by_rows<kD, kColumns>(x, a.a, b);
}

template <class T>
__device__ inline std::uint32_t pack(float low, float high) {
  if constexpr (std::is_same_v<T, f16>) {
    const __half2 pair = __floats2half2_rn(low, high);
    return static_cast<std::uint32_t>(__half_as_ushort(pair.x)) |
           static_cast<std::uint32_t>(__half_as_ushort(pair.y)) << 16;
  } else {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.x)) |
           static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.y)) << 16;
  }
}

// x[16 kTiles, kChannels] += p[16 kTiles, kRows] b[kRows, kChannels], with p rounded to T. b: the
// first of the channels in the tile's first row.
template <int kD, int kRows, int kChannels, int kTiles, class T>
__device__ inline void multiply_by_columns(float (&x)[kTiles][kChannels / 8][4],
                                           const float (&p)[kTiles][kRows / 8][4], const T* b) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const T* const row = b + (lane / 8 % 2 * 8 + lane % 8) * kPitch<kD> + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < kRows / 16; ++k) {
    std::uint32_t fragments[kTiles][4];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const auto& left = p[tile][2 * k];
      const auto& right = p[tile][2 * k + 1];
      fragments[tile][0] = pack<T>(left[0], left[1]);
      fragments[tile][1] = pack<T>(left[2], left[3]);
      fragments[tile][2] = pack<T>(right[0], right[1]);
      fragments[tile][3] = pack<T>(right[2], right[3]);
    }
#pragma unroll
    for (int n = 0; n < kChannels / 8; n += 2) {
      std::uint32_t r[4];
      ldmatrix_transposed(r, row + k * 16 * kPitch<kD> + n * 8);
      const std::uint32_t left[2] = {r[0], r[1]};
      const std::uint32_t right[2] = {r[2], r[3]};
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        mma<T>(x[tile][n], fragments[tile], left);
        mma<T>(x[tile][n + 1], fragments[tile], right);
      }
    }
  }
}

// Stores the warp's 16 rows of results, each row multiplied by its factor, through 16 rows of a
// tile that only this warp uses since the last barrier. Rows from `rows` on and channels from
// head_dim on are not stored. channel: where the results begin in a row.
template <int kD, int kChannels, class T>
__device__ inline void store_rows(T* to, std::int64_t stride, int rows, int head_dim, T* tile,
                                  const float (&x)[kChannels / 8][4], const float (&factor)[2],
                                  int channel) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    T* const row = tile + (lane_row() + 8 * half) * kPitch<kD> + channel + lane_column();
#pragma unroll
    for (int n = 0; n < kChannels / 8; ++n) {
      row[n * 8] = narrow<T>(x[n][2 * half] * factor[half]);
      row[n * 8 + 1] = narrow<T>(x[n][2 * half + 1] * factor[half]);
    }
  }
  __syncwarp();
  constexpr int kPerRow = kChannels / 8;
  for (int i = static_cast<int>(threadIdx.x % kWarp); i < 16 * kPerRow; i += kWarp) {
    const int row = i / kPerRow;
    const int column = channel + i % kPerRow * 8;
    if (row < rows && column < head_dim) {
      *reinterpret_cast<Row8<T>*>(to + row * stride + column) =
          *reinterpret_cast<const Row8<T>*>(tile + row * kPitch<kD> + column);
    }
  }
}

// Adds slope times (column + shift - row) to the 16 rows of a result.
template <int kColumns>
__device__ inline void add_distances(float (&x)[kColumns / 8][4], float slope, int shift) {
#pragma unroll
  for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      const int distance = n * 8 + lane_column() + at % 2 + shift - lane_row() - at / 2 * 8;
      x[n][at] += slope * static_cast<float>(distance);
    }
  }
}

// Calls run.template operator()<kD>() with the least kD that holds the head dimension.
template <class Run>
void by_head_dim(std::int64_t head_dim, const Run& run) {
  if (head_dim <= 32) {
    run.template operator()<32>();
  } else if (head_dim <= 64) {
    run.template operator()<64>();
  } else if (head_dim <= 128) {
    run.template operator()<128>();
  } else {
    run.template operator()<256>();
  }
}

// Calls run.template operator()<kDropout, kAlibi>() with what the call has.
template <class Run>
void by_options(const AttentionForward& p, const Run& run) {
  by_bool(p.dropout.probability > 0, [&](auto drops) {
    by_bool(!p.slopes.empty(), [&](auto has_bias) {
      run.template operator()<decltype(drops)::value, decltype(has_bias)::value>();
    });
  });
}

}  // namespace trireme::cuda
