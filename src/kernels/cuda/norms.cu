// Defines the kernels of LayerNorm and RMSNorm forward. A block takes one row.
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/norms.h"

namespace trireme::cuda {
namespace {

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
__global__ void __launch_bounds__(kMostNormThreads) norm_forward_kernel(const Forward<T> p) {
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
      const auto& kernel = kernel_of<norm_forward_kernel<T, decltype(is_wide)::value>>;
      permit_shared(kernel, shared);
      launch(kernel, dim3(blocks_of(p.rows, 1)), dim3(norm_threads(p.channels, kPerAccess<T>)),
             shared, cuda_stream(stream), arguments);
    });
  });
}

}  // namespace

void layer_norm_forward(Stream& stream, const NormForward& p) { forward(stream, p); }
void rms_norm_forward(Stream& stream, const NormForward& p) { forward(stream, p); }

}  // namespace trireme::cuda
