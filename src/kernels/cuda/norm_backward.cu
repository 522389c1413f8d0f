// Defines the kernels of the gradients of LayerNorm and RMSNorm. A block takes a range of rows and
// adds its part of the weights' gradients; the parts are added afterwards in a fixed order.
#include <algorithm>

#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/column_sum.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/norms.h"
#include "src/kernels/cuda/scratch.h"

namespace trireme::cuda {
namespace {

// Rows that one access per thread covers are copied ahead, up to this many threads.
constexpr int kMostHolders = 512;
// Parts of the weights' gradients: as many as keep a GPU busy, in scratch memory of at most 32 MiB.
constexpr std::int64_t kMostParts = 768;
constexpr std::int64_t kMostPartElements = std::int64_t{1} << 23;

template <class T>
struct Backward {
  const T* dy;
  const T* x;
  const T* weight;
  const float* mean;  // null for RMSNorm
  const float* rstd;
  const T* dresidual;  // or null
  T* dx;
  float* parts;  // [gridDim.x, 2, channels]: dweight and dbias; without dbias for RMSNorm
  std::int64_t rows;
  std::int64_t rows_per_block;
  std::int64_t channels;
};

struct RowMeans {
  float g;
  float g_unit;
};

// Adds a row to the block's dweight and dbias, of which each thread has its own elements, and
// returns the means of g = dy weight and of g unit.
template <int kCount, bool kWide, class T>
__device__ RowMeans add_row(const Backward<T>& p, std::int64_t row, float* dweight, float* dbias) {
  const float mean = p.mean == nullptr ? 0.0F : p.mean[row];
  const float rstd = p.rstd[row];
  float g_sum = 0;
  float g_unit_sum = 0;
  for (std::int64_t i = threadIdx.x * kCount; i < p.channels;
       i += static_cast<std::int64_t>(blockDim.x) * kCount) {
    const std::int64_t left = p.channels - i;
    const auto dy = load<kCount, kWide>(p.dy + row * p.channels + i, left);
    const auto x = load<kCount, kWide>(p.x + row * p.channels + i, left);
    const auto weight = load<kCount, kWide>(p.weight + i, left);
    auto of_weight = load<kCount, true>(dweight + i, kCount);
    auto of_bias = load<kCount, true>(dbias + i, kCount);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float unit = (x.x[j] - mean) * rstd;
      const float g = dy.x[j] * weight.x[j];  // 0 beyond the last channel
      of_weight.x[j] += dy.x[j] * unit;
      of_bias.x[j] += dy.x[j];
      g_sum += g;
      g_unit_sum += g * unit;
    }
    store<true>(dweight + i, of_weight, kCount);
    store<true>(dbias + i, of_bias, kCount);
  }
  const auto channels = static_cast<float>(p.channels);
  const float g_mean = p.mean == nullptr ? 0.0F : block_sum(g_sum) / channels;
  return {g_mean, block_sum(g_unit_sum) / channels};
}

// Computes dx = rstd (g - mean(g) - unit mean(g unit)) + dresidual, without mean(g) for RMSNorm.
template <int kCount, bool kWide, class T>
__device__ void put_row(const Backward<T>& p, std::int64_t row, const RowMeans& means) {
  const float mean = p.mean == nullptr ? 0.0F : p.mean[row];
  const float rstd = p.rstd[row];
  for (std::int64_t i = threadIdx.x * kCount; i < p.channels;
       i += static_cast<std::int64_t>(blockDim.x) * kCount) {
    const std::int64_t at = row * p.channels + i;
    const std::int64_t left = p.channels - i;
    auto dy = load<kCount, kWide>(p.dy + at, left);
    const auto x = load<kCount, kWide>(p.x + at, left);
    const auto weight = load<kCount, kWide>(p.weight + i, left);
    const auto skip =
        p.dresidual == nullptr ? Floats<kCount>{} : load<kCount, kWide>(p.dresidual + at, left);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float unit = (x.x[j] - mean) * rstd;
      const float g = dy.x[j] * weight.x[j];
      dy.x[j] = rstd * (g - means.g - unit * means.g_unit) + skip.x[j];
    }
    store<kWide>(p.dx + at, dy, left);
  }
}

template <class T, bool kWide>
__global__ void __launch_bounds__(kMostNormThreads) norm_backward_kernel(const Backward<T> p) {
  constexpr int kCount = kPerAccess<T>;
  const std::int64_t padded = (p.channels + kCount - 1) / kCount * kCount;
  float* const dweight = dynamic_shared<float>();
  float* const dbias = dweight + padded;
  const auto stride = static_cast<std::int64_t>(blockDim.x) * kCount;
  for (std::int64_t i = threadIdx.x * kCount; i < padded; i += stride) {
    store<true>(dweight + i, Floats<kCount>{}, kCount);
    store<true>(dbias + i, Floats<kCount>{}, kCount);
  }
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * p.rows_per_block;
  const std::int64_t end = min(begin + p.rows_per_block, p.rows);
  for (std::int64_t row = begin; row < end; ++row) {
    const RowMeans means = add_row<kCount, kWide>(p, row, dweight, dbias);
    put_row<kCount, kWide>(p, row, means);
  }
  const std::int64_t width = p.mean == nullptr ? p.channels : 2 * p.channels;
  float* const part = p.parts + static_cast<std::int64_t>(blockIdx.x) * width;
  for (std::int64_t i = threadIdx.x * kCount; i < p.channels; i += stride) {
    const std::int64_t left = p.channels - i;
    store<false>(part + i, load<kCount, true>(dweight + i, kCount), left);
    if (p.mean != nullptr) {
      store<false>(part + p.channels + i, load<kCount, true>(dbias + i, kCount), left);
    }
  }
}

// Returns the sums of x and y over the block, in one step. turn: alternates between calls, so that
// one barrier each suffices.
__device__ inline float2 block_sums(float x, float y, int turn) {
  __shared__ float2 partial[2][kMostHolders / kWarp];
  x = warp_sum(x);
  y = warp_sum(y);
  if (threadIdx.x % kWarp == 0) {
    partial[turn][threadIdx.x / kWarp] = {x, y};
  }
  __syncthreads();
  float2 sums = partial[turn][0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) {
    const float2 more = partial[turn][warp];
    sums.x += more.x;
    sums.y += more.y;
  }
  return sums;
}

// Rows of a block that shared memory holds: the one in use, and those on their way.
constexpr int kHeldRows = 4;

// The elements of a thread in the rows of a block, of which it reads only what it copied itself.
template <class T>
struct HeldRows {
  using Group = Chunk<T, kPerAccess<T>>;
  Group* data;  // [kHeldRows, 3 or without dresidual 2, blockDim.x]
  int arrays;

  __device__ Group* at(int slot, int array) const {
    return data + (slot * arrays + array) * static_cast<int>(blockDim.x) + threadIdx.x;
  }
  // Begins to copy the thread's elements of a row, from channel i on, if there are any.
  __device__ void fetch(const Backward<T>& p, int slot, std::int64_t row, std::int64_t end,
                        std::int64_t i) const {
    if (row < end && i < p.channels) {
      const std::int64_t from = row * p.channels + i;
      copy_async_16(at(slot, 0), p.dy + from);
      copy_async_16(at(slot, 1), p.x + from);
      if (p.dresidual != nullptr) {
        copy_async_16(at(slot, 2), p.dresidual + from);
      }
    }
    commit_copies();
  }
};

// The same as norm_backward_kernel, for rows that one access per thread covers: the next rows are
// copied to shared memory while one is in use, and sums stay in registers. Works in place.
template <class T>
__global__ void __launch_bounds__(kMostHolders) norm_backward_held_kernel(const Backward<T> p) {
  constexpr int kCount = kPerAccess<T>;
  const HeldRows<T> held{dynamic_shared<typename HeldRows<T>::Group>(),
                         p.dresidual == nullptr ? 2 : 3};
  const auto i = static_cast<std::int64_t>(threadIdx.x) * kCount;
  const bool here = i < p.channels;
  const auto channels = static_cast<float>(p.channels);
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * p.rows_per_block;
  const std::int64_t end = min(begin + p.rows_per_block, p.rows);
  for (int ahead = 0; ahead < kHeldRows - 1; ++ahead) {
    held.fetch(p, ahead, begin + ahead, end, i);
  }
  const auto weight = here ? load<kCount, true>(p.weight + i, kCount) : Floats<kCount>{};
  Floats<kCount> dweight{};
  Floats<kCount> dbias{};
  float next_mean = 0;
  float next_rstd = 0;
  const auto fetch_moments = [&](std::int64_t row) {
    if (row < end) {
      next_mean = p.mean == nullptr ? 0.0F : p.mean[row];
      next_rstd = p.rstd[row];
    }
  };
  fetch_moments(begin);
  int turn = 0;
  int slot = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    held.fetch(p, (slot + kHeldRows - 1) % kHeldRows, row + kHeldRows - 1, end, i);
    const float mean = next_mean;
    const float rstd = next_rstd;
    fetch_moments(row + 1);
    wait_copies<kHeldRows - 1>();
    Floats<kCount> g{};
    Floats<kCount> unit{};
    float g_sum = 0;
    float g_unit_sum = 0;
    if (here) {
      const auto dy = load<kCount, true>(held.at(slot, 0)->x, kCount);
      const auto x = load<kCount, true>(held.at(slot, 1)->x, kCount);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        unit.x[j] = (x.x[j] - mean) * rstd;
        g.x[j] = dy.x[j] * weight.x[j];
        dweight.x[j] += dy.x[j] * unit.x[j];
        dbias.x[j] += dy.x[j];
        g_sum += g.x[j];
        g_unit_sum += g.x[j] * unit.x[j];
      }
    }
    const float2 sums = block_sums(g_sum, g_unit_sum, turn);
    turn ^= 1;
    const float g_mean = p.mean == nullptr ? 0.0F : sums.x / channels;
    const float g_unit_mean = sums.y / channels;
    if (here) {
      const auto skip = p.dresidual == nullptr ? Floats<kCount>{}
                                               : load<kCount, true>(held.at(slot, 2)->x, kCount);
      Floats<kCount> dx;
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        dx.x[j] = rstd * (g.x[j] - g_mean - unit.x[j] * g_unit_mean) + skip.x[j];
      }
      store<true>(p.dx + row * p.channels + i, dx, kCount);
    }
    slot = (slot + 1) % kHeldRows;
  }
  if (here) {
    const std::int64_t width = p.mean == nullptr ? p.channels : 2 * p.channels;
    float* const part = p.parts + static_cast<std::int64_t>(blockIdx.x) * width;
    store<true>(part + i, dweight, kCount);
    if (p.mean != nullptr) {
      store<true>(part + p.channels + i, dbias, kCount);
    }
  }
}

template <class T>
void backward_of(Stream& stream, const NormBackward& p) {
  constexpr int kCount = kPerAccess<T>;
  const auto row_bytes = p.channels * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t width = p.mean.empty() ? p.channels : 2 * p.channels;
  const auto most = std::clamp<std::int64_t>(kMostPartElements / width, 1, kMostParts);
  const std::int64_t rows_per_block = std::max<std::int64_t>(1, (p.rows + most - 1) / most);
  const std::int64_t parts =
      std::max<std::int64_t>(1, (p.rows + rows_per_block - 1) / rows_per_block);
  const std::int64_t padded = (p.channels + kCount - 1) / kCount * kCount;
  const auto shared = static_cast<std::size_t>(2 * padded) * sizeof(float);
  auto* const sums = scratch_of<float>(stream, parts * width);
  const Backward<T> arguments{.dy = device_pointer<T>(p.dy),
                              .x = device_pointer<T>(p.x),
                              .weight = device_pointer<T>(p.weight),
                              .mean = device_pointer<float>(p.mean),
                              .rstd = device_pointer<float>(p.rstd),
                              .dresidual = device_pointer<T>(p.dresidual),
                              .dx = device_pointer<T>(p.dx),
                              .parts = sums,
                              .rows = p.rows,
                              .rows_per_block = rows_per_block,
                              .channels = p.channels};
  const bool wide =
      aligned_rows(row_bytes, {p.dy.data, p.x.data, p.weight.data, p.dresidual.data, p.dx.data});
  if (wide && p.channels <= std::int64_t{kMostHolders} * kCount) {
    const auto holders = static_cast<unsigned>((p.channels / kCount + kWarp - 1) / kWarp * kWarp);
    const std::size_t arrays = p.dresidual.empty() ? 2 : 3;
    const std::size_t copies = kHeldRows * arrays * holders * 16;
    permit_shared(kernel_of<norm_backward_held_kernel<T>>,
                  kHeldRows * 3 * holders * 16);  // in all cases
    launch(kernel_of<norm_backward_held_kernel<T>>, dim3(static_cast<unsigned>(parts)),
           dim3(holders), copies, cuda_stream(stream), arguments);
  } else {
    by_bool(wide, [&](auto is_wide) {
      const auto& kernel = kernel_of<norm_backward_kernel<T, decltype(is_wide)::value>>;
      permit_shared(kernel, shared);
      launch(kernel, dim3(static_cast<unsigned>(parts)), dim3(norm_threads(p.channels, kCount)),
             shared, cuda_stream(stream), arguments);
    });
  }
  sum_of_rows(cuda_stream(stream), sums, parts, width, device_pointer<float>(p.dweight), p.channels,
              device_pointer<float>(p.dbias));
}

void backward(Stream& stream, const NormBackward& p) {
  by_type(p.x.dtype, [&](auto zero) { backward_of<decltype(zero)>(stream, p); });
}

}  // namespace

void layer_norm_backward(Stream& stream, const NormBackward& p) { backward(stream, p); }
void rms_norm_backward(Stream& stream, const NormBackward& p) { backward(stream, p); }

}  // namespace trireme::cuda
