#include <cuda_fp8.h>

#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/fp8.h"
#include "src/kernels/cuda/product_plan.h"
#include "src/kernels/cuda/scratch.h"
#include "src/kernels/fp8.h"

namespace trireme::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;               // elements along both sides
constexpr int kTilePitch = kTile + 16;  // bytes

using Row8 = Chunk<bf16, 8>;
using Bytes16 = Chunk<unsigned char, 16>;

// Scales of an operand, in device memory. cuBLASLt refuses a scale, here the inverse, that is not
// aligned to 16 bytes.
struct alignas(16) Scale {
  float inverse;
  float scale;
};

__device__ unsigned most_of_block(unsigned x) {
  __shared__ unsigned partial[kMostWarps];
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const unsigned other = __shfl_xor_sync(kAllLanes, x, distance);
    x = other > x ? other : x;
  }
  if (threadIdx.x % kWarp == 0) {
    partial[threadIdx.x / kWarp] = x;
  }
  __syncthreads();
  for (unsigned warp = 0; warp < kThreads / kWarp; ++warp) {
    x = partial[warp] > x ? partial[warp] : x;
  }
  return x;
}

// Sets parts[block] to the largest magnitude of the block's elements, as the bits of a bf16: as
// whole numbers, they have the order of the magnitudes, with infinity and NaN at the end.
__global__ void __launch_bounds__(kThreads)
    most_kernel(unsigned* parts, const bf16* x, std::int64_t groups) {
  unsigned most = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < groups;
       i += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    const Row8 row = reinterpret_cast<const Row8*>(x)[i];
#pragma unroll
    for (const bf16 v : row.x) {
      const unsigned size = __bfloat16_as_ushort(v) & 0x7FFFU;
      most = size > most ? size : most;
    }
  }
  most = most_of_block(most);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = most;
  }
}

struct Choice {
  Scale* chosen;
  const unsigned* parts;
  int count;           // of parts; 0 if `given` has the scale and `most` is null
  const float* given;  // 0 if there is no scale; or null
  float* most;         // or null
  Fp8Format format;
};

// One block. Chooses the scale, and raises `most`, which stays NaN once it is.
__global__ void __launch_bounds__(kThreads) scale_kernel(const Choice p) {
  unsigned half = 0;
  for (int i = static_cast<int>(threadIdx.x); i < p.count; i += kThreads) {
    half = p.parts[i] > half ? p.parts[i] : half;
  }
  half = most_of_block(half);
  if (threadIdx.x == 0) {
    const float most = __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(half)));
    const float given = p.given != nullptr ? *p.given : 0;
    const float scale = given > 0 ? given : fp8_scale(most, p.format);
    *p.chosen = {.inverse = 1 / scale, .scale = scale};
    if (p.most != nullptr && !(most <= *p.most) && *p.most == *p.most) {
      *p.most = most;
    }
  }
}

// Infinity becomes NaN, as it would in e4m3 without saturation, so that divergence stays visible.
template <Fp8Format kFormat>
__device__ unsigned char byte_of(bf16 x, float scale) {
  const float wide = __bfloat162float(x);
  const bool finite = fabsf(wide) < INFINITY;
  const float scaled = finite ? wide * scale : NAN;
  return __nv_cvt_float_to_fp8(scaled, __NV_SATFINITE,
                               kFormat == Fp8Format::e4m3 ? __NV_E4M3 : __NV_E5M2);
}

template <Fp8Format kFormat>
__global__ void __launch_bounds__(kThreads)
    round_kernel(unsigned char* to, const bf16* from, const Scale* scale, std::int64_t groups) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= groups) {
    return;
  }
  const float factor = scale->scale;
  const Row8 low = reinterpret_cast<const Row8*>(from)[2 * i];
  const Row8 high = reinterpret_cast<const Row8*>(from)[2 * i + 1];
  Bytes16 bytes;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    bytes.x[j] = byte_of<kFormat>(low.x[j], factor);
    bytes.x[8 + j] = byte_of<kFormat>(high.x[j], factor);
  }
  reinterpret_cast<Bytes16*>(to)[i] = bytes;
}

// to[columns, rows] = from[rows, columns]^T, a tile per block.
template <Fp8Format kFormat>
__global__ void __launch_bounds__(kThreads)
    round_transposed_kernel(unsigned char* to, const bf16* from, const Scale* scale, int rows,
                            int columns) {
  __shared__ Bytes16 tile_memory[kTile * kTilePitch / 16];
  auto* const tile = reinterpret_cast<unsigned char*>(tile_memory);
  const float factor = scale->scale;
  const int row = static_cast<int>(blockIdx.y) * kTile;
  const int column = static_cast<int>(blockIdx.x) * kTile;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kTile / 8; i += kThreads) {
    const int r = i / (kTile / 8);
    const int c = i % (kTile / 8) * 8;
    if (row + r < rows && column + c < columns) {
      const Row8 part = *reinterpret_cast<const Row8*>(
          from + static_cast<std::int64_t>(row + r) * columns + column + c);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        tile[(c + j) * kTilePitch + r] = byte_of<kFormat>(part.x[j], factor);
      }
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kTile / 16; i += kThreads) {
    const int c = i / (kTile / 16);
    const int r = i % (kTile / 16) * 16;
    if (row + r < rows && column + c < columns) {
      *reinterpret_cast<Bytes16*>(to + static_cast<std::int64_t>(column + c) * rows + row + r) =
          *reinterpret_cast<const Bytes16*>(tile + c * kTilePitch + r);
    }
  }
}

// An operand that is stored [rows, columns], and what to make of it.
struct Rounding {
  const Fp8Operand& how;
  const bf16* from;
  std::int64_t rows;
  std::int64_t columns;
  bool transposes;
  unsigned* parts;
  Scale* scale;
  unsigned char* to;
};

template <Fp8Format kFormat>
void enqueue_bytes(cudaStream_t stream, const Rounding& p) {
  if (p.transposes) {
    launch(kernel_of<round_transposed_kernel<kFormat>>,
           dim3(blocks_of(p.columns, kTile), blocks_of(p.rows, kTile)), dim3(kThreads), 0, stream,
           p.to, p.from, static_cast<const Scale*>(p.scale), static_cast<int>(p.rows),
           static_cast<int>(p.columns));
  } else {
    const std::int64_t groups = p.rows * p.columns / 16;
    launch(kernel_of<round_kernel<kFormat>>, dim3(blocks_of(groups, kThreads)), dim3(kThreads), 0,
           stream, p.to, p.from, static_cast<const Scale*>(p.scale), groups);
  }
}

void enqueue(cudaStream_t stream, const Rounding& p) {
  check(p.rows % kFp8Multiple == 0 && p.columns % kFp8Multiple == 0 && aligned({p.from}),
        "the sizes of products of 8 bits are multiples of 16");
  int parts = 0;
  if (p.how.scale.empty() || !p.how.most.empty()) {
    const std::int64_t groups = p.rows * p.columns / 8;
    const unsigned blocks = blocks_of(groups, 4 * kThreads);
    parts = static_cast<int>(blocks < kFp8MostParts ? blocks : kFp8MostParts);
    launch(kernel_of<most_kernel>, dim3(static_cast<unsigned>(parts)), dim3(kThreads), 0, stream,
           p.parts, p.from, groups);
  }
  launch(kernel_of<scale_kernel>, dim3(1), dim3(kThreads), 0, stream,
         Choice{.chosen = p.scale,
                .parts = p.parts,
                .count = parts,
                .given = device_pointer<float>(p.how.scale),
                .most = device_pointer<float>(p.how.most),
                .format = p.how.format});
  if (p.how.format == Fp8Format::e4m3) {
    enqueue_bytes<Fp8Format::e4m3>(stream, p);
  } else {
    enqueue_bytes<Fp8Format::e5m2>(stream, p);
  }
}

}  // namespace

Fp8Operands round_operands(Stream& stream, const Matmul& p) {
  check(p.a.dtype == DType::bf16 && p.b.dtype == DType::bf16,
        "operands of bf16 are rounded to 8 bits");
  const cudaStream_t queue = cuda_stream(stream);
  const std::int64_t bytes = kProductScratchBytes + kFp8NoteBytes + (p.m + p.n) * p.k;
  auto* at = scratch_of<unsigned char>(stream, bytes) + kProductScratchBytes;
  auto* const scales = reinterpret_cast<Scale*>(at);
  auto* const parts = reinterpret_cast<unsigned*>(at + kFp8ScaleBytes);
  unsigned char* const a = at + kFp8NoteBytes;
  unsigned char* const b = a + p.m * p.k;
  enqueue(queue, {.how = p.fp8_a,
                  .from = device_pointer<bf16>(p.a),
                  .rows = p.transpose_a ? p.k : p.m,
                  .columns = p.transpose_a ? p.m : p.k,
                  .transposes = p.transpose_a,
                  .parts = parts,
                  .scale = scales,
                  .to = a});
  enqueue(queue, {.how = p.fp8_b,
                  .from = device_pointer<bf16>(p.b),
                  .rows = p.transpose_b ? p.n : p.k,
                  .columns = p.transpose_b ? p.k : p.n,
                  .transposes = !p.transpose_b,
                  .parts = parts,
                  .scale = scales + 1,
                  .to = b});
  return {a, b, &scales[0].inverse, &scales[1].inverse};
}

}  // namespace trireme::cuda
