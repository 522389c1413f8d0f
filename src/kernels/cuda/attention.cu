// Defines the table's entries for attention, which choose between the kernels.
#include <initializer_list>

#include <cuda_warpgroup.h>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/attention.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/scratch.h"

namespace trireme::cuda {
namespace {

int checked_int(std::int64_t value) {
  check(value >= 0 && value < std::int64_t{1} << 31, "a size of attention fits into an int");
  return static_cast<int>(value);
}

bool can_tile_views(const AttentionForward& p, std::initializer_list<const void*> others) {
  const bool sizes = p.head_dim % 8 == 0 && p.q_stride % 8 == 0 && p.kv_stride % 8 == 0;
  return p.q.dtype != DType::f32 && sizes && aligned({p.q.data, p.k.data, p.v.data, p.out.data}) &&
         aligned(others);
}

void check_attention(const AttentionForward& p) {
  check(p.head_dim >= 1 && p.head_dim <= kMostHeadDim,
        "CUDA's attention has head dimensions up to 256");
  check(p.heads % p.kv_heads == 0, "key/value heads divide the heads");
}

}  // namespace

AttentionSizes attention_sizes(const AttentionForward& p) {
  return {.batch = checked_int(p.batch),
          .time = checked_int(p.time),
          .kv_time = checked_int(p.kv_time),
          .heads = checked_int(p.heads),
          .kv_heads = checked_int(p.kv_heads),
          .head_dim = checked_int(p.head_dim),
          .q_stride = p.q_stride,
          .kv_stride = p.kv_stride,
          .kv_batch_rows = p.kv_batch_rows,
          .scale = static_cast<float>(p.score_scale()),
          .slopes = p.slopes.empty() ? nullptr : device_pointer<float>(p.slopes),
          .dropout = p.dropout};
}

bool can_tile(const AttentionForward& p) { return can_tile_views(p, {}); }

bool can_tile(const AttentionBackward& p) {
  const bool has_room = p.forward.head_dim <= kNarrowHeadDim ||
                        most_shared_bytes() >= static_cast<std::int64_t>(kWideBackwardBytes);
  return has_room && can_tile_views(p.forward, {p.dout.data, p.dq.data, p.dk.data, p.dv.data});
}

bool can_use_warpgroups(const AttentionForward& p) {
  if ((p.head_dim != 64 && p.head_dim != 128) || p.dropout.probability > 0) {
    return false;
  }
  int device = 0;
  int major = 0;
  cuda_check(cudaGetDevice(&device), "cudaGetDevice");
  cuda_check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "cudaDeviceGetAttribute");
  return kHasWarpgroups && major == kWarpgroupCapability;
}

void attention_forward(Stream& stream, const AttentionForward& p) {
  check_attention(p);
  if (p.batch * p.time == 0) {
    return;
  }
  if (can_tile(p) && can_use_warpgroups(p)) {
    warpgroup_attention_forward(cuda_stream(stream), p);
  } else if (can_tile(p)) {
    tiled_attention_forward(cuda_stream(stream), p);
  } else {
    plain_attention_forward(cuda_stream(stream), p);
  }
}

void attention_backward(Stream& stream, const AttentionBackward& p) {
  const AttentionForward& forward = p.forward;
  check_attention(forward);
  check(forward.time == forward.kv_time && forward.kv_batch_rows == forward.time,
        "attention's backward has no key-value cache");
  if (forward.batch * forward.time == 0) {
    return;
  }
  auto* const delta = scratch_of<float>(stream, forward.batch * forward.heads * forward.time);
  by_type(forward.q.dtype, [&](auto zero) {
    using T = decltype(zero);
    sum_deltas<T>(cuda_stream(stream), attention_sizes(forward), device_pointer<T>(forward.out),
                  device_pointer<T>(p.dout), delta);
  });
  if (can_tile(p) && can_use_warpgroups(forward)) {
    warpgroup_attention_backward(cuda_stream(stream), p, delta);
  } else if (can_tile(p)) {
    tiled_attention_backward(cuda_stream(stream), p, delta);
  } else {
    plain_attention_backward(cuda_stream(stream), p, delta);
  }
}

}  // namespace trireme::cuda
