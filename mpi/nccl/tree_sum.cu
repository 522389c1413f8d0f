#include <type_traits>

#include <cuda_language.h>

#include "mpi/nccl/tree_sum.h"
#include "src/base/tree_middle.h"

namespace trireme {
namespace {

constexpr int kThreads = 256;
constexpr int kMostHeight = 14;  // of the tree over 16,384 ranks

// Values are added in this type: bf16 and f16 in f32, all others in their own.
template <class T>
struct Sum {
  using Type = T;
  static __device__ T of(T x) { return x; }
  static __device__ T back(T x) { return x; }
};
template <>
struct Sum<__nv_bfloat16> {
  using Type = float;
  static __device__ float of(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __device__ __nv_bfloat16 back(float x) { return __float2bfloat16_rn(x); }
};
template <>
struct Sum<__half> {
  using Type = float;
  static __device__ float of(__half x) { return __half2float(x); }
  static __device__ __half back(float x) { return __float2half_rn(x); }
};

// NaN is kept by all operations, and sums of integers wrap around.
template <class S>
__device__ S combined(S a, S b, ReduceOp op) {
  if (op == ReduceOp::sum) {
    if constexpr (std::is_integral_v<S>) {
      using Unsigned = std::make_unsigned_t<S>;
      return static_cast<S>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  }
  const bool is_nan = a != a;
  return is_nan || (op == ReduceOp::max ? a > b : a < b) ? a : b;
}

template <class T>
struct Blocks {
  const T* blocks;
  T* into;
  std::int64_t count;
  std::int64_t stride;
  int parts;
  ReduceOp op;
};

// Returns the node [lo, hi) of the tree for element i. The height of a node is a parameter of the
// template, because the compiler must know how deep the calls go.
template <int kHeight, class T>
__device__ __noinline__ typename Sum<T>::Type node(const Blocks<T>& b, std::int64_t i, int lo,
                                                   int hi) {
  if constexpr (kHeight > 0) {
    if (hi - lo > 1) {
      const int middle = tree_middle(lo, hi);
      const auto left = node<kHeight - 1>(b, i, lo, middle);
      return combined(left, node<kHeight - 1>(b, i, middle, hi), b.op);
    }
  }
  return Sum<T>::of(b.blocks[lo * b.stride + i]);
}

template <class T>
__global__ void __launch_bounds__(kThreads) reduce_kernel(Blocks<T> b) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < b.count) {
    b.into[i] = Sum<T>::back(node<kMostHeight>(b, i, 0, b.parts));
  }
}

__device__ float added(float x, float y) { return x + y; }
__device__ float4 added(const float4& x, const float4& y) {
  return {x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w};
}

// The ranks of one host or of a power of two are the usual case: with the number known, the tree is
// unrolled. V: float, or float4 for four elements in one access of 16 bytes.
template <int kParts, class V>
__device__ V unrolled_node(const Blocks<float>& b, std::int64_t i, int lo) {
  if constexpr (kParts == 1) {
    return *reinterpret_cast<const V*>(b.blocks + lo * b.stride + i);
  } else {
    constexpr int kLeft = tree_middle(0, kParts);
    const V left = unrolled_node<kLeft, V>(b, i, lo);
    return added(left, unrolled_node<kParts - kLeft, V>(b, i, lo + kLeft));
  }
}

template <int kParts>
__global__ void __launch_bounds__(kThreads) sum_kernel(Blocks<float> b) {
  const std::int64_t i = 4 * (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x);
  if (i + 4 <= b.count) {
    *reinterpret_cast<float4*>(b.into + i) = unrolled_node<kParts, float4>(b, i, 0);
    return;
  }
  for (std::int64_t j = i; j < b.count; ++j) {
    b.into[j] = unrolled_node<kParts, float>(b, j, 0);
  }
}

unsigned grid_of(std::int64_t elements, std::int64_t per_thread) {
  const std::int64_t per_block = kThreads * per_thread;
  return static_cast<unsigned>((elements + per_block - 1) / per_block);
}

template <class T>
Blocks<T> blocks_of(const TreeSum& s) {
  return {
      static_cast<const T*>(s.blocks), static_cast<T*>(s.into), s.count, s.stride, s.parts, s.op};
}

template <int kParts>
void launch_sum(cudaStream_t stream, const TreeSum& s) {
  cuda::launch(cuda::kernel_of<sum_kernel<kParts>>, dim3(grid_of(s.count, 4)), dim3(kThreads), 0,
               stream, blocks_of<float>(s));
}

template <class T>
void launch_any(cudaStream_t stream, const TreeSum& s) {
  cuda::launch(cuda::kernel_of<reduce_kernel<T>>, dim3(grid_of(s.count, 1)), dim3(kThreads), 0,
               stream, blocks_of<T>(s));
}

}  // namespace

void reduce_in_tree(cudaStream_t stream, const TreeSum& s) {
  if (s.count == 0) {
    return;
  }
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(s.blocks) % 16 == 0 &&
                          reinterpret_cast<std::uintptr_t>(s.into) % 16 == 0 && s.stride % 4 == 0;
  const bool is_float_sum = s.dtype == DType::f32 && s.op == ReduceOp::sum && is_aligned;
  if (is_float_sum && s.parts == 2) {
    launch_sum<2>(stream, s);
  } else if (is_float_sum && s.parts == 4) {
    launch_sum<4>(stream, s);
  } else if (is_float_sum && s.parts == 8) {
    launch_sum<8>(stream, s);
  } else if (s.dtype == DType::f32) {
    launch_any<float>(stream, s);
  } else if (s.dtype == DType::f64) {
    launch_any<double>(stream, s);
  } else if (s.dtype == DType::i32) {
    launch_any<std::int32_t>(stream, s);
  } else if (s.dtype == DType::i64) {
    launch_any<std::int64_t>(stream, s);
  } else if (s.dtype == DType::f16) {
    launch_any<__half>(stream, s);
  } else {
    launch_any<__nv_bfloat16>(stream, s);
  }
}

}  // namespace trireme
