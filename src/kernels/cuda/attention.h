// Declares what the attention kernels share: their arguments, and the choice between kernels.
#pragma once

#include <cuda_runtime.h>

#include "src/base/philox.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cuda {

inline constexpr std::int64_t kMostHeadDim = 256;

// The tiled kernels need at most kLeastSharedBytes of shared memory for a block, which all devices
// of 8.0 and later have, but more in the backward pass for heads of more than kNarrowHeadDim
// dimensions: 8.6 and 8.9 have less.
inline constexpr std::int64_t kNarrowHeadDim = 128;
inline constexpr std::size_t kLeastSharedBytes = std::size_t{99} << 10;
inline constexpr std::size_t kWideBackwardBytes = std::size_t{160} << 10;

// AttentionSizes holds the shape of a call, with strides in elements.
struct AttentionSizes {
  int batch;
  int time;
  int kv_time;
  int heads;
  int kv_heads;
  int head_dim;
  std::int64_t q_stride;
  std::int64_t kv_stride;
  std::int64_t kv_batch_rows;
  float scale;          // as AttentionForward::score_scale()
  const float* slopes;  // f32 [heads], or null: ALiBi's
  AttentionDropout dropout;
};

AttentionSizes attention_sizes(const AttentionForward& p);

// What the forward kernels take: tensors of kernel_arguments.h, with elements of type T.
template <class T>
struct ForwardArguments {
  AttentionSizes s;
  const T* q;
  const T* k;
  const T* v;
  T* out;
  float* lse;  // or null
};

template <class T>
ForwardArguments<T> forward_arguments(const AttentionForward& p) {
  return {.s = attention_sizes(p),
          .q = device_pointer<T>(p.q),
          .k = device_pointer<T>(p.k),
          .v = device_pointer<T>(p.v),
          .out = device_pointer<T>(p.out),
          .lse = device_pointer<float>(p.lse)};
}

// The same of the backward kernels. delta: f32 [batch, heads, time], from sum_deltas().
template <class T>
struct BackwardArguments {
  AttentionSizes s;
  const T* q;
  const T* k;
  const T* v;
  const T* dout;
  const float* lse;
  const float* delta;
  T* dq;
  T* dk;
  T* dv;
};

template <class T>
BackwardArguments<T> backward_arguments(const AttentionBackward& p, const float* delta) {
  const AttentionForward& forward = p.forward;
  return {.s = attention_sizes(forward),
          .q = device_pointer<T>(forward.q),
          .k = device_pointer<T>(forward.k),
          .v = device_pointer<T>(forward.v),
          .dout = device_pointer<T>(p.dout),
          .lse = device_pointer<float>(forward.lse),
          .delta = delta,
          .dq = device_pointer<T>(p.dq),
          .dk = device_pointer<T>(p.dk),
          .dv = device_pointer<T>(p.dv)};
}

// Returns a head's slope divided by the scale, for a bias that is added before the scale.
template <bool kAlibi>
__device__ float unscaled_slope(const AttentionSizes& s, int head) {
  if constexpr (kAlibi) {
    return s.slopes[head] / s.scale;
  } else {
    return 0;
  }
}

// Returns dropout's factor for the weight of a key: 0, or 1 / (1 - probability).
__device__ inline float dropout_factor(std::uint32_t word, float probability, float kept) {
  return uniform_float(word) >= probability ? kept : 0.0F;
}

// Returns the random words of four adjacent keys from 4 * group on.
__device__ inline PhiloxCounter dropout_words(const AttentionDropout& dropout, PhiloxKey key,
                                              int query, int sample, int group) {
  return philox({static_cast<std::uint32_t>(query), dropout.present_step(),
                 dropout.present_sample() + static_cast<std::uint32_t>(sample),
                 static_cast<std::uint32_t>(group)},
                key);
}

// Enqueues delta[b, h, t] = sum over d of out[b, t, h, d] dout[b, t, h, d]; delta: f32
// [B, heads, T], out and dout: T [B, T, heads * D].
template <class T>
void sum_deltas(cudaStream_t stream, const AttentionSizes& sizes, const T* out, const T* dout,
                float* delta);

// The plain kernels take any type, alignment, stride, and head dimension up to kMostHeadDim.
void plain_attention_forward(cudaStream_t stream, const AttentionForward& p);
void plain_attention_backward(cudaStream_t stream, const AttentionBackward& p, const float* delta);

// The tiled kernels multiply 16x16 tiles of bf16 or f16 on the matrix units. They need head
// dimensions and strides that are multiples of 8, and addresses that are multiples of 16 bytes.
bool can_tile(const AttentionForward& p);
bool can_tile(const AttentionBackward& p);
void tiled_attention_forward(cudaStream_t stream, const AttentionForward& p);

void tiled_attention_backward(cudaStream_t stream, const AttentionBackward& p, const float* delta);

// The same by Hopper's warpgroups, which multiply from shared memory (cuda_warpgroup.h): for heads
// of 64 or 128 dimensions without dropout, where the current device and this program's code permit
// it, and where the tiled kernels can be used.
bool can_use_warpgroups(const AttentionForward& p);
void warpgroup_attention_forward(cudaStream_t stream, const AttentionForward& p);
void warpgroup_attention_backward(cudaStream_t stream, const AttentionBackward& p,
                                  const float* delta);

}  // namespace trireme::cuda
