// Defines the kernels of LayerNorm and RMSNorm. A block takes one row forward, and a range of rows
// backward, where it adds its part of the weights' gradients; the parts are added afterwards in a
// fixed order.
#include <algorithm>

#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/column_sum.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/scratch.h"

namespace trireme::cuda {
namespace {

constexpr int kMostThreads = 256;
constexpr std::int64_t kMostParts = 512;

// Returns how many threads take a row of that many elements, kCount at a time.
unsigned row_threads(std::int64_t channels, int count) {
  const std::int64_t accesses = (channels + count - 1) / count;
  return static_cast<unsigned>(std::min<std::int64_t>(kMostThreads, (accesses + 31) / 32 * 32));
}

template <class T>
struct Forward {
  const T* x;
  const T* residual;  // or null
  T* sum;
  const T* weight;
  const T* bias;  // null for RMSNorm
  T* y;
  float* mean;  // null for RMSNorm
  float* rstd;
  std::int64_t channels;
  float epsilon;
};

// Loads elements i.. of the row to normalize, after storing x + residual if there is a residual.
template <int kCount, bool kWide, class T>
__device__ Floats<kCount> take(const Forward<T>& p, std::int64_t row, std::int64_t i) {
  const std::int64_t at = row * p.channels + i;
  const std::int64_t left = p.channels - i;
  auto x = load<kCount, kWide>(p.x + at, left);
  if (p.residual != nullptr) {
    const auto other = load<kCount, kWide>(p.residual + at, left);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      // The row is normalized as it is stored.
      x.x[j] = widen(narrow<T>(x.x[j] + other.x[j]));
    }
    store<kWide>(p.sum + at, x, left);
  }
  return x;
}

// The row is held in shared memory; each thread reads only what it stored itself.
template <class T, bool kWide>
__global__ void __launch_bounds__(kMostThreads) norm_forward_kernel(const Forward<T> p) {
  constexpr int kCount = kPerAccess<T>;
  T* const held = dynamic_shared<T>();
  const std::int64_t row = blockIdx.x;
  const auto first = static_cast<std::int64_t>(threadIdx.x) * kCount;
  const auto stride = static_cast<std::int64_t>(blockDim.x) * kCount;
  const auto channels = static_cast<float>(p.channels);
  float sum = 0;
  for (std::int64_t i = first; i < p.channels; i += stride) {
    const auto x = take<kCount, kWide>(p, row, i);
    store<true>(held + i, x, kCount);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      sum += x.x[j];
    }
  }
  const float mean = p.mean == nullptr ? 0.0F : block_sum(sum) / channels;
  float squares = 0;
  for (std::int64_t i = first; i < p.channels; i += stride) {
    const auto x = load<kCount, true>(held + i, kCount);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float distance = i + j < p.channels ? x.x[j] - mean : 0.0F;
      squares += distance * distance;
    }
  }
  const float rstd = 1.0F / sqrtf(block_sum(squares) / channels + p.epsilon);
  for (std::int64_t i = first; i < p.channels; i += stride) {
    const std::int64_t left = p.channels - i;
    auto x = load<kCount, true>(held + i, kCount);
    const auto weight = load<kCount, kWide>(p.weight + i, left);
    const auto bias = p.bias == nullptr ? Floats<kCount>{} : load<kCount, kWide>(p.bias + i, left);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      x.x[j] = (x.x[j] - mean) * rstd * weight.x[j] + bias.x[j];
    }
    store<kWide>(p.y + row * p.channels + i, x, left);
  }
  if (threadIdx.x == 0) {
    p.rstd[row] = rstd;
    if (p.mean != nullptr) {
      p.mean[row] = mean;
    }
  }
}

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
__global__ void __launch_bounds__(kMostThreads) norm_backward_kernel(const Backward<T> p) {
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

void forward(Stream& stream, const NormForward& p) {
  if (p.rows == 0) {
    return;
  }
  by_type(p.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto row_bytes = p.channels * static_cast<std::int64_t>(sizeof(T));
    const auto shared = static_cast<std::size_t>((row_bytes + 15) / 16 * 16);
    const Forward<T> arguments{.x = device_pointer<T>(p.x),
                               .residual = device_pointer<T>(p.residual),
                               .sum = device_pointer<T>(p.sum),
                               .weight = device_pointer<T>(p.weight),
                               .bias = device_pointer<T>(p.bias),
                               .y = device_pointer<T>(p.y),
                               .mean = device_pointer<float>(p.mean),
                               .rstd = device_pointer<float>(p.rstd),
                               .channels = p.channels,
                               .epsilon = p.epsilon};
    const bool wide = aligned_rows(
        row_bytes, {p.x.data, p.residual.data, p.sum.data, p.weight.data, p.bias.data, p.y.data});
    by_bool(wide, [&](auto is_wide) {
      const auto kernel = norm_forward_kernel<T, decltype(is_wide)::value>;
      permit_shared(kernel, shared);
      launch(kernel, dim3(blocks_of(p.rows, 1)), dim3(row_threads(p.channels, kPerAccess<T>)),
             shared, cuda_stream(stream), arguments);
    });
  });
}

template <class T>
void backward_of(Stream& stream, const NormBackward& p) {
  constexpr int kCount = kPerAccess<T>;
  const auto row_bytes = p.channels * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t rows_per_block =
      std::max<std::int64_t>(1, (p.rows + kMostParts - 1) / kMostParts);
  const std::int64_t parts =
      std::max<std::int64_t>(1, (p.rows + rows_per_block - 1) / rows_per_block);
  const std::int64_t width = p.mean.empty() ? p.channels : 2 * p.channels;
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
  by_bool(wide, [&](auto is_wide) {
    const auto kernel = norm_backward_kernel<T, decltype(is_wide)::value>;
    permit_shared(kernel, shared);
    launch(kernel, dim3(static_cast<unsigned>(parts)), dim3(row_threads(p.channels, kCount)),
           shared, cuda_stream(stream), arguments);
  });
  sum_of_rows(cuda_stream(stream), sums, parts, width, device_pointer<float>(p.dweight), p.channels,
              device_pointer<float>(p.dbias));
}

void backward(Stream& stream, const NormBackward& p) {
  by_type(p.x.dtype, [&](auto zero) { backward_of<decltype(zero)>(stream, p); });
}

}  // namespace

void layer_norm_forward(Stream& stream, const NormForward& p) { forward(stream, p); }
void layer_norm_backward(Stream& stream, const NormBackward& p) { backward(stream, p); }
void rms_norm_forward(Stream& stream, const NormForward& p) { forward(stream, p); }
void rms_norm_backward(Stream& stream, const NormBackward& p) { backward(stream, p); }

}  // namespace trireme::cuda
