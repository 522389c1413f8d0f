// The language of kernels, for nvcc: what CUDA has no words for, and launches. The other version of
// this header, src/device/sim/include/cuda_language.h, has the same names for the simulated device;
// the include path chooses between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "src/device/cuda/language/kernel.h"
#include "src/device/cuda/language/launch_error.h"

namespace trireme::cuda {

// Returns the block's dynamic shared memory, aligned to 128 bytes.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
}

// d[16, 8] += a[16, 16] b[16, 8], with fp32 sums; T: __nv_bfloat16 or __half. All lanes of the warp
// take part; the fragments are those of mma.sync.m16n8k16 in the PTX manual.
template <class T>
__device__ void mma(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);
template <>
__device__ inline void mma<__nv_bfloat16>(float (&d)[4], const std::uint32_t (&a)[4],
                                          const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ inline void mma<__half>(float (&d)[4], const std::uint32_t (&a)[4],
                                   const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Loads four 8x8 tiles of 2-byte numbers from shared memory: lane 8 i + j names row j of tile i,
// which is aligned to 16 bytes. All lanes of the warp take part.
__device__ inline void ldmatrix(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
// The same, with each tile transposed.
__device__ inline void ldmatrix_transposed(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// Returns 2^x to 22 bits; results below the smallest normal number are 0.
__device__ inline float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Copies 16 bytes, aligned to 16, past the registers. The copy belongs to the thread's next group.
__device__ inline void copy_async_16(void* shared, const void* global) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}
// The same; 16 bytes of zeros if there is nothing to copy, in which case nothing is read.
__device__ inline void copy_async_16_or_zero(void* shared, const void* global, bool there) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  const int bytes = there ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
               "r"(bytes)
               : "memory");
}
// Ends the thread's group of copies.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kPending of the thread's groups are under way. Other threads see the copies
// after a barrier.
template <int kPending>
__device__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Lets a kernel have up to `bytes` bytes of dynamic shared memory. More than 48 KiB need this call.
template <class... Parameters>
void allow_shared(const Kernel<Parameters...>& kernel, std::size_t bytes) {
  const cudaError_t error = cudaFuncSetAttribute(
      kernel.function(), cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error != cudaSuccess) {
    throw_launch_error(error);
  }
}

// Puts a grid on the stream. Throws DeviceError if the launch is refused.
template <class... Parameters, class... Arguments>
void launch(const Kernel<Parameters...>& kernel, dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, Arguments&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  const cudaError_t error =
      cudaLaunchKernelEx(&config, kernel.function(), std::forward<Arguments>(arguments)...);
  if (error != cudaSuccess) {
    throw_launch_error(error);
  }
}

}  // namespace trireme::cuda
