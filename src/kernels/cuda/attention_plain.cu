// Attention for any type, alignment, stride and head dimension: a warp takes one query, or one key
// in the pass for the keys' gradients, and the block's warps share tiles of 32 rows of the other
// side. A lane computes one dot product of a tile, and then a few channels of the weighted sum.
#include "src/kernels/cuda/attention.h"
#include "src/kernels/cuda/block_sums.h"

namespace trireme::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kTile = 32;
constexpr int kSlots = static_cast<int>(kMostHeadDim) / kWarp;  // channels per lane

// Shared holds the block's dynamic shared memory, as f32. Rows of tiles are one element longer than
// a head, so that lanes that read one column of different rows use different banks.
struct Shared {
  float* tile_a;   // [kTile, head_dim + 1]
  float* tile_b;   // like tile_a
  float* own_a;    // [kWarps, head_dim]: the rows of the warps' own queries or keys
  float* own_b;    // like own_a
  float* weights;  // [2, kWarps, kTile]
  float* of_row;   // [2, kTile]: lse and delta of a tile of queries
};

std::size_t shared_bytes(int head_dim) {
  const auto width = static_cast<std::size_t>(head_dim);
  return sizeof(float) *
         (2 * kTile * (width + 1) + 2 * kWarps * width + 2 * kWarps * kTile + 2 * kTile);
}

__device__ Shared shared_memory(int head_dim) {
  Shared s{};
  s.tile_a = dynamic_shared<float>();
  s.tile_b = s.tile_a + kTile * (head_dim + 1);
  s.own_a = s.tile_b + kTile * (head_dim + 1);
  s.own_b = s.own_a + kWarps * head_dim;
  s.weights = s.own_b + kWarps * head_dim;
  s.of_row = s.weights + 2 * kWarps * kTile;
  return s;
}

__device__ int lane() { return static_cast<int>(threadIdx.x % kWarp); }
__device__ int warp() { return static_cast<int>(threadIdx.x / kWarp); }

// Loads kTile rows; rows from `rows` on become zero.
template <class T>
__device__ void load_tile(float* tile, const T* from, std::int64_t stride, int rows, int head_dim) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * head_dim; i += kThreads) {
    const int row = i / head_dim;
    const int d = i % head_dim;
    tile[row * (head_dim + 1) + d] = row < rows ? widen(from[row * stride + d]) : 0.0F;
  }
}

// Loads the warp's own row; a warp without one gets zeros.
template <class T>
__device__ void load_own(float* own, const T* from, bool exists, int head_dim) {
  for (int d = lane(); d < head_dim; d += kWarp) {
    own[warp() * head_dim + d] = exists ? widen(from[d]) : 0.0F;
  }
}

// Returns the dot product of the warp's own row and the lane's row of a tile.
__device__ float dot(const float* own, const float* tile, int head_dim) {
  const float* const a = own + warp() * head_dim;
  const float* const b = tile + lane() * (head_dim + 1);
  float sum = 0;
  for (int d = 0; d < head_dim; ++d) {
    sum += a[d] * b[d];
  }
  return sum;
}

// Returns what ALiBi adds to a score.
__device__ float bias_of(const AttentionSizes& s, int head, int distance) {
  return s.slopes == nullptr ? 0.0F : s.slopes[head] * static_cast<float>(distance);
}

// Adds the rows of a tile, weighted by the warp's weights, to the lane's channels.
__device__ void add_weighted(float (&sums)[kSlots], const float* weights, const float* tile,
                             int head_dim) {
  for (int row = 0; row < kTile; ++row) {
    const float weight = weights[warp() * kTile + row];
#pragma unroll
    for (int slot = 0; slot < kSlots; ++slot) {
      const int d = lane() + slot * kWarp;
      if (d < head_dim) {
        sums[slot] += weight * tile[row * (head_dim + 1) + d];
      }
    }
  }
}

template <class T>
__device__ void store_own(T* to, const float (&sums)[kSlots], float factor, int head_dim) {
#pragma unroll
  for (int slot = 0; slot < kSlots; ++slot) {
    const int d = lane() + slot * kWarp;
    if (d < head_dim) {
      to[d] = narrow<T>(sums[slot] * factor);
    }
  }
}

// Returns dropout's factor for one weight.
__device__ float factor_of(const AttentionDropout& dropout, int head, int sample, int query,
                           int key) {
  if (dropout.probability <= 0) {
    return 1;
  }
  const PhiloxCounter words =
      dropout_words(dropout, philox_key(dropout.seed_of(head)), query, sample, key / 4);
  const std::uint32_t low = key % 2 == 0 ? words[0] : words[1];
  const std::uint32_t high = key % 2 == 0 ? words[2] : words[3];
  return dropout_factor(key % 4 < 2 ? low : high, dropout.probability,
                        1 / (1 - dropout.probability));
}

template <class T>
__global__ void __launch_bounds__(kThreads) forward_kernel(const ForwardArguments<T> p) {
  const AttentionSizes& s = p.s;
  const Shared shared = shared_memory(s.head_dim);
  const int head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kWarps;
  const int query = first + warp();
  const bool exists = query < s.time;
  const int position = s.kv_time - s.time + query;
  const int keys = min(s.kv_time, s.kv_time - s.time + first + kWarps);  // that the block needs
  const std::int64_t row = static_cast<std::int64_t>(sample) * s.time + query;
  const std::int64_t kv = sample * s.kv_batch_rows * s.kv_stride +
                          static_cast<std::int64_t>(head / (s.heads / s.kv_heads)) * s.head_dim;
  load_own(shared.own_a, p.q + row * s.q_stride + static_cast<std::int64_t>(head) * s.head_dim,
           exists, s.head_dim);
  float most = -INFINITY;
  float sum = 0;
  float out[kSlots] = {};
  for (int begin = 0; begin < keys; begin += kTile) {
    __syncthreads();
    load_tile(shared.tile_a, p.k + kv + begin * s.kv_stride, s.kv_stride, keys - begin, s.head_dim);
    load_tile(shared.tile_b, p.v + kv + begin * s.kv_stride, s.kv_stride, keys - begin, s.head_dim);
    __syncthreads();
    const int key = begin + lane();
    const float score = key <= position ? s.scale * dot(shared.own_a, shared.tile_a, s.head_dim) +
                                              bias_of(s, head, key - position)
                                        : -INFINITY;
    float greater = fmaxf(most, score);
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      greater = fmaxf(greater, __shfl_xor_sync(kAllLanes, greater, distance));
    }
    const float base = greater == -INFINITY ? 0.0F : greater;
    const float shrink = expf(most - base);
    const float weight = expf(score - base);
    most = greater;
    sum = sum * shrink + warp_sum(weight);
#pragma unroll
    for (float& x : out) {
      x *= shrink;
    }
    const bool dropped = s.dropout.probability > 0 && key <= position;
    shared.weights[warp() * kTile + lane()] =
        dropped ? weight * factor_of(s.dropout, head, sample, query, key) : weight;
    __syncwarp();
    add_weighted(out, shared.weights, shared.tile_b, s.head_dim);
  }
  if (exists) {
    store_own(p.out + (row * s.heads + head) * s.head_dim, out, 1.0F / sum, s.head_dim);
    if (p.lse != nullptr && lane() == 0) {
      p.lse[(static_cast<std::int64_t>(sample) * s.heads + head) * s.time + query] =
          most + logf(sum);
    }
  }
}

// With P = exp(score - lse) and dropout's factor Z: dS = P (Z dout v - delta), and
// dq = scale sum of dS k (Dao et al., 2022, appendix B).
template <class T>
__global__ void __launch_bounds__(kThreads) dq_kernel(const BackwardArguments<T> p) {
  const AttentionSizes& s = p.s;
  const Shared shared = shared_memory(s.head_dim);
  const int head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kWarps;
  const int query = first + warp();
  const bool exists = query < s.time;
  const int keys = min(s.time, first + kWarps);
  const std::int64_t row = static_cast<std::int64_t>(sample) * s.time + query;
  const std::int64_t of_head = static_cast<std::int64_t>(head) * s.head_dim;
  const std::int64_t kv = sample * s.kv_batch_rows * s.kv_stride +
                          static_cast<std::int64_t>(head / (s.heads / s.kv_heads)) * s.head_dim;
  load_own(shared.own_a, p.q + row * s.q_stride + of_head, exists, s.head_dim);
  load_own(shared.own_b, p.dout + row * s.heads * s.head_dim + of_head, exists, s.head_dim);
  const std::int64_t of_row = (static_cast<std::int64_t>(sample) * s.heads + head) * s.time + query;
  const float lse = exists ? p.lse[of_row] : 0.0F;
  const float delta = exists ? p.delta[of_row] : 0.0F;
  float dq[kSlots] = {};
  for (int begin = 0; begin < keys; begin += kTile) {
    __syncthreads();
    load_tile(shared.tile_a, p.k + kv + begin * s.kv_stride, s.kv_stride, keys - begin, s.head_dim);
    load_tile(shared.tile_b, p.v + kv + begin * s.kv_stride, s.kv_stride, keys - begin, s.head_dim);
    __syncthreads();
    const int key = begin + lane();
    float slope = 0;
    if (key <= query && exists) {
      const float weight = expf(s.scale * dot(shared.own_a, shared.tile_a, s.head_dim) +
                                bias_of(s, head, key - query) - lse);
      const float factor = factor_of(s.dropout, head, sample, query, key);
      slope = weight * (factor * dot(shared.own_b, shared.tile_b, s.head_dim) - delta);
    }
    shared.weights[warp() * kTile + lane()] = slope;
    __syncwarp();
    add_weighted(dq, shared.weights, shared.tile_a, s.head_dim);
  }
  if (exists) {
    store_own(p.dq + row * s.q_stride + of_head, dq, s.scale, s.head_dim);
  }
}

// The gradients of a key and a value: sums over the queries of all heads that read them, head by
// head, in their order. dv = sum of P Z dout, dk = scale sum of dS q.
template <class T>
__global__ void __launch_bounds__(kThreads) dkv_kernel(const BackwardArguments<T> p) {
  const AttentionSizes& s = p.s;
  const Shared shared = shared_memory(s.head_dim);
  const int kv_head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int first = static_cast<int>(blockIdx.x) * kWarps;
  const int key = first + warp();
  const bool exists = key < s.time;
  const int group = s.heads / s.kv_heads;
  const std::int64_t batch_row = static_cast<std::int64_t>(sample) * s.time;
  const std::int64_t own =
      (batch_row + key) * s.kv_stride + static_cast<std::int64_t>(kv_head) * s.head_dim;
  load_own(shared.own_a, p.k + own, exists, s.head_dim);
  load_own(shared.own_b, p.v + own, exists, s.head_dim);
  float dk[kSlots] = {};
  float dv[kSlots] = {};
  float* const slopes = shared.weights + kWarps * kTile;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const std::int64_t of_head = static_cast<std::int64_t>(head) * s.head_dim;
    const std::int64_t rows = (static_cast<std::int64_t>(sample) * s.heads + head) * s.time;
    for (int begin = first; begin < s.time; begin += kTile) {
      __syncthreads();
      load_tile(shared.tile_a, p.q + (batch_row + begin) * s.q_stride + of_head, s.q_stride,
                s.time - begin, s.head_dim);
      load_tile(shared.tile_b, p.dout + (batch_row + begin) * s.heads * s.head_dim + of_head,
                static_cast<std::int64_t>(s.heads) * s.head_dim, s.time - begin, s.head_dim);
      if (warp() == 0) {
        const bool here = begin + lane() < s.time;
        shared.of_row[lane()] = here ? p.lse[rows + begin + lane()] : 0.0F;
        shared.of_row[kTile + lane()] = here ? p.delta[rows + begin + lane()] : 0.0F;
      }
      __syncthreads();
      const int query = begin + lane();
      float weight = 0;
      float slope = 0;
      if (key <= query && query < s.time) {
        const float score =
            s.scale * dot(shared.own_a, shared.tile_a, s.head_dim) + bias_of(s, head, key - query);
        const float unit = expf(score - shared.of_row[lane()]);
        const float factor = factor_of(s.dropout, head, sample, query, key);
        weight = unit * factor;
        slope = unit * (factor * dot(shared.own_b, shared.tile_b, s.head_dim) -
                        shared.of_row[kTile + lane()]);
      }
      shared.weights[warp() * kTile + lane()] = weight;
      slopes[warp() * kTile + lane()] = slope;
      __syncwarp();
      add_weighted(dv, shared.weights, shared.tile_b, s.head_dim);
      add_weighted(dk, slopes, shared.tile_a, s.head_dim);
    }
  }
  if (exists) {
    store_own(p.dk + own, dk, s.scale, s.head_dim);
    store_own(p.dv + own, dv, 1.0F, s.head_dim);
  }
}

template <class T>
struct Deltas {
  const T* out;
  const T* dout;
  float* delta;
  std::int64_t rows;  // batch * time * heads
  int time;
  int heads;
  int head_dim;
};

// Eight lanes take one head of one token.
constexpr int kDeltaLanes = 8;

template <class T, bool kWide>
__global__ void __launch_bounds__(kThreads) delta_kernel(const Deltas<T> p) {
  constexpr int kCount = kPerAccess<T>;
  const std::int64_t row =
      (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kDeltaLanes;
  float sum = 0;
  for (int d = static_cast<int>(threadIdx.x) % kDeltaLanes * kCount; row < p.rows && d < p.head_dim;
       d += kDeltaLanes * kCount) {
    const auto a = load<kCount, kWide>(p.out + row * p.head_dim + d, p.head_dim - d);
    const auto b = load<kCount, kWide>(p.dout + row * p.head_dim + d, p.head_dim - d);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      sum += a.x[j] * b.x[j];
    }
  }
#pragma unroll
  for (int distance = kDeltaLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  if (row < p.rows && threadIdx.x % kDeltaLanes == 0) {
    const std::int64_t token = row / p.heads;
    const std::int64_t head = row % p.heads;
    p.delta[(token / p.time * p.heads + head) * p.time + token % p.time] = sum;
  }
}

dim3 grid_of(int rows, int heads, int batch) {
  return dim3(blocks_of(rows, kWarps), static_cast<unsigned>(heads), static_cast<unsigned>(batch));
}

}  // namespace

template <class T>
void sum_deltas(cudaStream_t stream, const AttentionSizes& sizes, const T* out, const T* dout,
                float* delta) {
  const std::int64_t rows = static_cast<std::int64_t>(sizes.batch) * sizes.time * sizes.heads;
  const Deltas<T> arguments{.out = out,
                            .dout = dout,
                            .delta = delta,
                            .rows = rows,
                            .time = sizes.time,
                            .heads = sizes.heads,
                            .head_dim = sizes.head_dim};
  const bool wide =
      aligned_rows(sizes.head_dim * static_cast<std::int64_t>(sizeof(T)), {out, dout});
  by_bool(wide, [&](auto is_wide) {
    launch(kernel_of<delta_kernel<T, decltype(is_wide)::value>>,
           dim3(blocks_of(rows, kThreads / kDeltaLanes)), dim3(kThreads), 0, stream, arguments);
  });
}
template void sum_deltas<float>(cudaStream_t, const AttentionSizes&, const float*, const float*,
                                float*);
template void sum_deltas<bf16>(cudaStream_t, const AttentionSizes&, const bf16*, const bf16*,
                               float*);
template void sum_deltas<f16>(cudaStream_t, const AttentionSizes&, const f16*, const f16*, float*);

void plain_attention_forward(cudaStream_t stream, const AttentionForward& p) {
  const AttentionSizes sizes = attention_sizes(p);
  const std::size_t shared = shared_bytes(sizes.head_dim);
  by_type(p.q.dtype, [&](auto zero) {
    using T = decltype(zero);
    permit_shared(kernel_of<forward_kernel<T>>, shared);
    launch(kernel_of<forward_kernel<T>>, grid_of(sizes.time, sizes.heads, sizes.batch),
           dim3(kThreads), shared, stream, forward_arguments<T>(p));
  });
}

void plain_attention_backward(cudaStream_t stream, const AttentionBackward& p, const float* delta) {
  const AttentionForward& forward = p.forward;
  const AttentionSizes sizes = attention_sizes(forward);
  const std::size_t shared = shared_bytes(sizes.head_dim);
  by_type(forward.q.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arguments = backward_arguments<T>(p, delta);
    permit_shared(kernel_of<dq_kernel<T>>, shared);
    permit_shared(kernel_of<dkv_kernel<T>>, shared);
    launch(kernel_of<dq_kernel<T>>, grid_of(sizes.time, sizes.heads, sizes.batch), dim3(kThreads),
           shared, stream, arguments);
    launch(kernel_of<dkv_kernel<T>>, grid_of(sizes.time, sizes.kv_heads, sizes.batch),
           dim3(kThreads), shared, stream, arguments);
  });
}

}  // namespace trireme::cuda
