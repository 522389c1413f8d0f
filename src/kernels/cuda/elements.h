// Gives kernels access to device memory: pointers of views, and loads and stores of a few adjacent
// elements as f32. Kernels use accesses of 16 bytes where the host found all pointers aligned, and
// single elements otherwise.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include <cuda_language.h>

#include "src/device/device.h"
#include "src/kernels/cuda/outcome.h"

namespace trireme {

template <>
constexpr DType dtype_of<__nv_bfloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<__half>() {
  return DType::f16;
}

namespace cuda {

using bf16 = __nv_bfloat16;
using f16 = __half;

// Returns the elements of a view of a CUDA device's memory, whose type must be T; null for an empty
// view.
template <class T>
T* device_pointer(const View& view) {
  check(view.empty() || view.dtype == dtype_of<T>(), "a kernel reads a view as the type it has");
  check(view.empty() || view.device.kind == DeviceKind::cuda, "CUDA kernels access device memory");
  return static_cast<T*>(view.data);
}
template <class T>
const T* device_pointer(const ConstView& view) {
  check(view.empty() || view.dtype == dtype_of<T>(), "a kernel reads a view as the type it has");
  check(view.empty() || view.device.kind == DeviceKind::cuda, "CUDA kernels access device memory");
  return static_cast<const T*>(view.data);
}

// Calls f with a value of the activations' type, which has 2 bytes.
template <class F>
void by_half_type(DType dtype, F f) {
  check(dtype == DType::bf16 || dtype == DType::f16, "activations are f32, bf16 or f16");
  if (dtype == DType::bf16) {
    f(bf16{});
  } else {
    f(f16{});
  }
}

// Calls f with a value of the activations' type.
template <class F>
void by_type(DType dtype, F f) {
  if (dtype == DType::f32) {
    f(float{});
  } else {
    by_half_type(dtype, f);
  }
}

// Returns whether all pointers permit accesses of 16 bytes; null does.
inline bool aligned(std::initializer_list<const void*> pointers) {
  bool all = true;
  for (const void* pointer : pointers) {
    all = all && reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  }
  return all;
}
// Returns whether rows of that many bytes, from aligned pointers on, are aligned too.
inline bool aligned_rows(std::int64_t row_bytes, std::initializer_list<const void*> pointers) {
  return row_bytes % 16 == 0 && aligned(pointers);
}

inline unsigned blocks_of(std::int64_t count, std::int64_t per_block) {
  const std::int64_t blocks = (count + per_block - 1) / per_block;
  check(blocks < std::int64_t{1} << 31, "a grid has fewer than 2^31 blocks");
  return static_cast<unsigned>(blocks);
}

__device__ inline float widen(float x) { return x; }
__device__ inline float widen(bf16 x) { return __bfloat162float(x); }
__device__ inline float widen(f16 x) { return __half2float(x); }
template <class T>
__device__ T narrow(float x);
template <>
__device__ inline float narrow<float>(float x) {
  return x;
}
template <>
__device__ inline bf16 narrow<bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline f16 narrow<f16>(float x) {
  return __float2half_rn(x);
}

// The number of elements in 16 bytes.
template <class T>
inline constexpr int kPerAccess = 16 / static_cast<int>(sizeof(T));

template <int kCount>
struct Floats {
  float x[kCount];
};

template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Chunk {
  T x[kCount];
};

// Returns p[0 .. kCount-1]. Wide: p is aligned to a Chunk and all elements exist. Otherwise
// elements from `left` on are 0.
template <int kCount, bool kWide, class T>
__device__ inline Floats<kCount> load(const T* p, std::int64_t left) {
  Floats<kCount> result;
  if constexpr (kWide) {
    const Chunk<T, kCount> chunk = *reinterpret_cast<const Chunk<T, kCount>*>(p);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      result.x[j] = widen(chunk.x[j]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      result.x[j] = j < left ? widen(p[j]) : 0.0F;
    }
  }
  return result;
}

// Sets p[0 .. kCount-1]; unless wide, only the first `left` of them.
template <bool kWide, int kCount, class T>
__device__ inline void store(T* p, const Floats<kCount>& values, std::int64_t left) {
  if constexpr (kWide) {
    Chunk<T, kCount> chunk;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      chunk.x[j] = narrow<T>(values.x[j]);
    }
    *reinterpret_cast<Chunk<T, kCount>*>(p) = chunk;
  } else {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      if (j < left) {
        p[j] = narrow<T>(values.x[j]);
      }
    }
  }
}

// Returns the most bytes of shared memory that a block may have on the calling thread's device.
inline std::int64_t most_shared_bytes() {
  int device = 0;
  int bytes = 0;
  require(cudaGetDevice(&device), "cannot find the current GPU");
  require(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "cannot find the GPU's shared memory");
  return bytes;
}

// Lets a kernel have that much dynamic shared memory; up to 48 KiB need no permission.
template <class... Parameters>
void permit_shared(const Kernel<Parameters...>& kernel, std::size_t bytes) {
  if (bytes > std::size_t{48} << 10) {
    allow_shared(kernel, bytes);
  }
}

// Calls f with std::true_type or std::false_type.
template <class F>
void by_bool(bool value, F f) {
  if (value) {
    f(std::true_type{});
  } else {
    f(std::false_type{});
  }
}

}  // namespace cuda
}  // namespace trireme
