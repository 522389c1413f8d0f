// Flash attention, forward (Dao, 2023): a block takes rows of queries of one head, a warp 16 or 32
// of them, and the keys come in tiles, the next one being copied while one is in use.
#include "src/kernels/cuda/attention_tiles.h"

namespace trireme::cuda {
namespace {

constexpr int kThreads = kRowWarps * kWarp;

// The tiles of a block in shared memory.
template <class T, int kD, int kKeys, int kRows>
struct Tiles {
  T* q;
  T* k;  // two tiles, used in turn
  T* v;
  static constexpr int kElements = (kRows + 4 * kKeys) * kPitch<kD>;
  __device__ explicit Tiles(T* memory)
      : q(memory), k(q + kRows * kPitch<kD>), v(k + 2 * kKeys * kPitch<kD>) {}
  __device__ T* keys(int tile) const { return k + tile % 2 * kKeys * kPitch<kD>; }
  __device__ T* values(int tile) const { return v + tile % 2 * kKeys * kPitch<kD>; }
};

// A warp's queries stay in registers where these suffice.
template <class T, int kD, int kTiles>
using QueryRows = std::conditional_t<kD <= 64, KeptRows<kD, kTiles>, StoredRows<kD, kTiles, T>>;

// Says which two rows of 16 a lane has, and holds their softmax so far. Sums are over the lane's
// columns.
struct Rows {
  int query[2];
  int position[2];
  float most[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
};

// Makes the scores of keys that come after a row's position -infinity.
template <int kKeys>
__device__ void mask(float (&x)[kKeys / 8][4], const Rows& rows, int first_key) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int key = first_key + n * 8 + lane_column() + j;
        float& score = x[n][2 * half + j];
        score = key > rows.position[half] ? -INFINITY : score;
      }
    }
  }
}

// Turns scores into weights, relative to the rows' new maxima, to which `out` is rescaled.
template <int kKeys, int kD>
__device__ void soften(float (&x)[kKeys / 8][4], float (&out)[kD / 8][4], Rows& rows,
                       float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float most = rows.most[half];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      most = fmaxf(most, fmaxf(x[n][2 * half], x[n][2 * half + 1]));
    }
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
    const float base = most == -INFINITY ? 0.0F : most * scale_log2;
    const float shrink = power_of_two(rows.most[half] * scale_log2 - base);
    rows.most[half] = most;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& score = x[n][2 * half + j];
        score = power_of_two(score * scale_log2 - base);
        sum += score;
      }
    }
    rows.sum[half] = rows.sum[half] * shrink + sum;
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      out[n][2 * half] *= shrink;
      out[n][2 * half + 1] *= shrink;
    }
  }
}

// Applies dropout to weights; of the words of four keys, a lane uses two adjacent ones.
template <int kKeys>
__device__ void drop(float (&x)[kKeys / 8][4], const Rows& rows, const AttentionDropout& dropout,
                     int head, int sample, int first_key) {
  const PhiloxKey seed = philox_key(dropout.seed_of(head));
  const float kept = 1 / (1 - dropout.probability);
  const bool upper = lane_column() % 4 != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      const int group = (first_key + n * 8 + lane_column()) / 4;
      const PhiloxCounter words = dropout_words(dropout, seed, rows.query[half], sample, group);
      x[n][2 * half] *= dropout_factor(upper ? words[2] : words[0], dropout.probability, kept);
      x[n][2 * half + 1] *= dropout_factor(upper ? words[3] : words[1], dropout.probability, kept);
    }
  }
}

// Stores 16 rows of the output and their lse.
template <int kD, class T>
__device__ void finish(const ForwardArguments<T>& p, const Rows& rows,
                       const float (&out)[kD / 8][4], T* tile, int first, int head, int sample) {
  const AttentionSizes& s = p.s;
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = rows.sum[half];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    factor[half] = 1.0F / sum;
    if (p.lse != nullptr && rows.query[half] < s.time && threadIdx.x % 4 == 0) {
      p.lse[(static_cast<std::int64_t>(sample) * s.heads + head) * s.time + rows.query[half]] =
          rows.most[half] * s.scale + logf(sum);
    }
  }
  const std::int64_t stride = static_cast<std::int64_t>(s.heads) * s.head_dim;
  T* const to = p.out + (static_cast<std::int64_t>(sample) * s.time + first) * stride +
                static_cast<std::int64_t>(head) * s.head_dim;
  store_rows<kD, kD>(to, stride, s.time - first, s.head_dim, tile, out, factor, 0);
}

template <class T, int kD, int kKeys, bool kDropout, bool kAlibi>
__global__ void __launch_bounds__(kThreads) forward_kernel(const ForwardArguments<T> p) {
  constexpr int kTiles = kRowTiles<kD, kDropout, kAlibi>;
  constexpr int kWarpRows = 16 * kTiles;
  constexpr int kBlockRows = kRowWarps * kWarpRows;
  const AttentionSizes& s = p.s;
  const Tiles<T, kD, kKeys, kBlockRows> tiles(dynamic_shared<T>());
  // Blocks with the most keys start first.
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kBlockRows;
  const int head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int warp_row = static_cast<int>(threadIdx.x / kWarp) * kWarpRows;
  const int own = first + warp_row;  // the warp's first query
  const int past = s.kv_time - s.time;
  const int keys = min(s.kv_time, past + first + kBlockRows);
  const int count = (keys + kKeys - 1) / kKeys;
  const std::int64_t kv = sample * s.kv_batch_rows * s.kv_stride +
                          static_cast<std::int64_t>(head / (s.heads / s.kv_heads)) * s.head_dim;
  const auto start = [&](int tile) {
    const int begin = tile * kKeys;
    const std::int64_t at = kv + begin * s.kv_stride;
    start_rows<kD, kKeys>(tiles.keys(tile), p.k + at, s.kv_stride, keys - begin, s.head_dim);
    start_rows<kD, kKeys>(tiles.values(tile), p.v + at, s.kv_stride, keys - begin, s.head_dim);
    commit_copies();
  };
  start_rows<kD, kBlockRows>(tiles.q,
                             p.q +
                                 (static_cast<std::int64_t>(sample) * s.time + first) * s.q_stride +
                                 static_cast<std::int64_t>(head) * s.head_dim,
                             s.q_stride, s.time - first, s.head_dim);
  start(0);
  Rows rows[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      rows[tile].query[half] = own + 16 * tile + lane_row() + 8 * half;
      rows[tile].position[half] = past + rows[tile].query[half];
    }
  }
  const float slope = unscaled_slope<kAlibi>(s, head);
  T* const own_q = tiles.q + warp_row * kPitch<kD>;
  wait_copies<0>();
  __syncthreads();
  const QueryRows<T, kD, kTiles> queries(own_q);
  float out[kTiles][kD / 8][4] = {};
  for (int turn = 0; turn < count; ++turn) {
    wait_copies<0>();
    __syncthreads();  // also: nobody still reads the tiles that are overwritten next
    if (turn + 1 < count) {
      start(turn + 1);
    }
    const int first_key = turn * kKeys;
    if (first_key > past + own + kWarpRows - 1) {
      continue;  // none of the warp's queries reads these keys
    }
    float x[kTiles][kKeys / 8][4] = {};
    multiply_by_rows<kD, kKeys>(x, queries, tiles.keys(turn));
    const bool masked = first_key + kKeys > past + own;
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      if constexpr (kAlibi) {
        add_distances<kKeys>(x[tile], slope, first_key - past - own - 16 * tile);
      }
      if (masked) {
        mask<kKeys>(x[tile], rows[tile], first_key);
      }
      soften<kKeys, kD>(x[tile], out[tile], rows[tile], s.scale * kLog2E);
      if constexpr (kDropout) {
        drop<kKeys>(x[tile], rows[tile], s.dropout, head, sample, first_key);
      }
    }
    multiply_by_columns<kD, kKeys, kD>(out, x, tiles.values(turn));
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    finish<kD>(p, rows[tile], out[tile], own_q + 16 * tile * kPitch<kD>, own + 16 * tile, head,
               sample);
  }
}

template <int kD, bool kDropout, bool kAlibi, class T>
void enqueue(cudaStream_t stream, const ForwardArguments<T>& p) {
  constexpr int kKeys = kD <= 128 ? 64 : 32;
  constexpr int kBlockRows = kRowWarps * 16 * kRowTiles<kD, kDropout, kAlibi>;
  constexpr std::size_t kShared = Tiles<T, kD, kKeys, kBlockRows>::kElements * sizeof(T);
  static_assert(kShared <= kLeastSharedBytes);
  const auto& kernel = kernel_of<forward_kernel<T, kD, kKeys, kDropout, kAlibi>>;
  permit_shared(kernel, kShared);
  launch(kernel,
         dim3(blocks_of(p.s.time, kBlockRows), static_cast<unsigned>(p.s.heads),
              static_cast<unsigned>(p.s.batch)),
         dim3(kThreads), kShared, stream, p);
}

}  // namespace

void tiled_attention_forward(cudaStream_t stream, const AttentionForward& p) {
  by_half_type(p.q.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arguments = forward_arguments<T>(p);
    by_head_dim(p.head_dim, [&]<int kD>() {
      by_options(p, [&]<bool kDropout, bool kAlibi>() {
        enqueue<kD, kDropout, kAlibi>(stream, arguments);
      });
    });
  });
}

}  // namespace trireme::cuda
