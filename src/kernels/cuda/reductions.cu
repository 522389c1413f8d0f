// Defines the kernels that add up whole arrays, in fixed orders.
#include <algorithm>

#include "src/base/philox.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/each.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/scratch.h"

namespace trireme::cuda {
namespace {

constexpr int kThreads = 256;

struct Squares {
  double* sums;
  const float* x;
  std::int64_t count;
  bool wide;
};

// Returns the sum of the thread's elements of a block.
template <bool kWide>
__device__ double own_squares(const Squares& p, std::int64_t begin) {
  constexpr int kCount = 4;
  constexpr int kAccesses = static_cast<int>(kSumBlock) / (kThreads * kCount);
  Floats<kCount> x[kAccesses];
#pragma unroll
  for (int access = 0; access < kAccesses; ++access) {
    const std::int64_t at =
        begin + (access * kThreads + static_cast<std::int64_t>(threadIdx.x)) * kCount;
    x[access] = load<kCount, kWide>(p.x + at, p.count - at);
  }
  double sum = 0;
#pragma unroll
  for (const auto& group : x) {
#pragma unroll
    for (const float v : group.x) {
      sum += static_cast<double>(v) * static_cast<double>(v);
    }
  }
  return sum;
}

__global__ void __launch_bounds__(kThreads) squares_kernel(const Squares p) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * kSumBlock;
  const bool whole = p.wide && begin + kSumBlock <= p.count;
  const double sum = block_sum(whole ? own_squares<true>(p, begin) : own_squares<false>(p, begin));
  if (threadIdx.x == 0) {
    p.sums[blockIdx.x] = sum;
  }
}

constexpr int kTile = 2048;

// One block: thread 0 adds a tile in order while the other warps fetch the next tile.
__global__ void __launch_bounds__(kThreads)
    sum_kernel(double* total, const float* x, std::int64_t count) {
  __shared__ float tiles[2][kTile];
  const auto fetch = [&](std::int64_t from, int into) {
    constexpr int kFetching = kThreads - kWarp;
    for (int i = static_cast<int>(threadIdx.x) - kWarp; i < kTile; i += kFetching) {
      if (i >= 0) {
        tiles[into][i] = from + i < count ? x[from + i] : 0.0F;
      }
    }
  };
  if (threadIdx.x >= kWarp) {
    fetch(0, 0);
  }
  __syncthreads();
  double sum = 0;
  int tile = 0;
  for (std::int64_t from = 0; from < count; from += kTile) {
    if (threadIdx.x >= kWarp) {
      fetch(from + kTile, 1 - tile);
    } else if (threadIdx.x == 0) {  // the zeros behind the last element change nothing
#pragma unroll 16
      for (int i = 0; i < kTile; ++i) {
        sum += static_cast<double>(tiles[tile][i]);
      }
    }
    __syncthreads();
    tile = 1 - tile;
  }
  if (threadIdx.x == 0) {
    *total = sum;
  }
}

// Sets factor to 1 / (sqrt(sum of sums) + epsilon).
__global__ void __launch_bounds__(kThreads)
    factor_kernel(float* factor, const double* sums, std::int64_t count, float epsilon) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    sum += sums[i];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    *factor = static_cast<float>(1 / (sqrt(sum) + static_cast<double>(epsilon)));
  }
}

struct Scale {
  static constexpr int kCount = 4;
  float* x;
  const float* factor;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto a = load<kCount, kWide>(x + i, count - i);
#pragma unroll
    for (float& v : a.x) {
      v *= *factor;
    }
    store<kWide>(x + i, a, count - i);
  }
};

// The digest of n bytes is mix64(n + the sum, modulo 2^64, of mix64(w ^ mix64(i)) over their 8-byte
// little-endian words w at index i, the last one padded with zeros). Integers can be added in any
// order.
constexpr int kDigestBlocks = 512;

struct alignas(16) Words {
  std::uint64_t x[2];
};

struct Bytes {
  const unsigned char* data;
  std::int64_t count;
  std::uint64_t* parts;  // [gridDim.x]
  bool wide;
};

__device__ std::uint64_t word_at(const Bytes& p, std::int64_t word) {
  std::uint64_t bits = 0;
  for (int i = 0; i < 8 && 8 * word + i < p.count; ++i) {
    bits |= static_cast<std::uint64_t>(p.data[8 * word + i]) << 8 * i;
  }
  return bits;
}

__device__ std::uint64_t mixed(std::uint64_t word, std::int64_t index) {
  return mix64(word ^ mix64(static_cast<std::uint64_t>(index)));
}

__global__ void __launch_bounds__(kThreads) digest_parts_kernel(const Bytes p) {
  const std::int64_t pairs = (p.count + 15) / 16;
  std::uint64_t sum = 0;
  for (std::int64_t pair = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
       pair < pairs; pair += static_cast<std::int64_t>(gridDim.x) * kThreads) {
    Words words;
    if (p.wide && 16 * pair + 16 <= p.count) {
      words = reinterpret_cast<const Words*>(p.data)[pair];
    } else {
      words = {{word_at(p, 2 * pair), word_at(p, 2 * pair + 1)}};
    }
    sum += mixed(words.x[0], 2 * pair);
    if (16 * pair + 8 < p.count) {
      sum += mixed(words.x[1], 2 * pair + 1);
    }
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    p.parts[blockIdx.x] = sum;
  }
}

__global__ void __launch_bounds__(kThreads)
    digest_kernel(std::int64_t* digest, const std::uint64_t* parts, int count, std::int64_t bytes) {
  std::uint64_t sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    sum += parts[i];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    *digest = static_cast<std::int64_t>(mix64(static_cast<std::uint64_t>(bytes) + sum));
  }
}

}  // namespace

void sums_of_squares(Stream& stream, View sums, ConstView x) {
  if (x.count == 0) {
    return;
  }
  launch(kernel_of<squares_kernel>, dim3(blocks_of(x.count, kSumBlock)), dim3(kThreads), 0,
         cuda_stream(stream),
         Squares{.sums = device_pointer<double>(sums),
                 .x = device_pointer<float>(x),
                 .count = x.count,
                 .wide = aligned({x.data})});
}

void sum(Stream& stream, View total, ConstView x) {
  launch(kernel_of<sum_kernel>, dim3(1), dim3(kThreads), 0, cuda_stream(stream),
         device_pointer<double>(total), device_pointer<float>(x), x.count);
}

void normalize(Stream& stream, View x, ConstView sums, float epsilon) {
  auto* const factor = scratch_of<float>(stream, 1);
  launch(kernel_of<factor_kernel>, dim3(1), dim3(kThreads), 0, cuda_stream(stream), factor,
         device_pointer<double>(sums), sums.count, epsilon);
  each(stream, Scale{.x = device_pointer<float>(x),
                     .factor = factor,
                     .count = x.count,
                     .wide = aligned({x.data})});
}

void digest(Stream& stream, View digest, ConstView x) {
  check(x.device.kind == DeviceKind::cuda, "CUDA kernels access device memory");
  const std::int64_t bytes = x.bytes();
  const auto blocks = std::min(blocks_of(bytes, 16 * kThreads) + 1, unsigned{kDigestBlocks});
  auto* const parts = scratch_of<std::uint64_t>(stream, kDigestBlocks);
  launch(kernel_of<digest_parts_kernel>, dim3(blocks), dim3(kThreads), 0, cuda_stream(stream),
         Bytes{.data = static_cast<const unsigned char*>(x.data),
               .count = bytes,
               .parts = parts,
               .wide = aligned({x.data})});
  launch(kernel_of<digest_kernel>, dim3(1), dim3(kThreads), 0, cuda_stream(stream),
         device_pointer<std::int64_t>(digest), static_cast<const std::uint64_t*>(parts),
         static_cast<int>(blocks), bytes);
}

}  // namespace trireme::cuda
