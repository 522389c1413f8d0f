// Divergence of rows of logits from a teacher's: one block per row, which reads both rows three
// times; the second and third time, most of them are in the L2 cache.
#include <algorithm>

#include "src/base/ignored_target.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/entries.h"

namespace trireme::cuda {
namespace {

constexpr int kDistillationThreads = 512;

template <class T>
struct Lessons {
  const T* logits;
  T* teacher;
  const std::int32_t* targets;
  float* divergences;
  std::int64_t vocabulary;
  std::int64_t pitch;
  float inverse_temperature;
  float scale;  // of the gradient, divided by the temperature
  bool forward_only;
};

// Softened is the softmax of a row at a temperature: exp((x - most) / temperature) / sum.
struct Softened {
  float most;
  double sum;
  __device__ float exponent(float x, float inverse_temperature) const {
    return (x - most) * inverse_temperature;
  }
};

// Contains barriers; each thread gets the result.
template <class T>
__device__ Softened softened(const T* x, const Lessons<T>& p) {
  float most = -INFINITY;
  for (std::int64_t i = threadIdx.x; i < p.vocabulary; i += blockDim.x) {
    most = fmaxf(most, widen(x[i]));
  }
  Softened s{block_max(most), 0};
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < p.vocabulary; i += blockDim.x) {
    sum += expf(s.exponent(widen(x[i]), p.inverse_temperature));
  }
  s.sum = block_sum(static_cast<double>(sum));
  return s;
}

template <class T>
__global__ void __launch_bounds__(kDistillationThreads) distillation_kernel(const Lessons<T> p) {
  const std::int64_t row = blockIdx.x;
  const T* const x = p.logits + row * p.pitch;
  T* const teacher = p.teacher + row * p.pitch;
  const bool counts = p.targets[row] != kIgnoredTarget;  // the same for the whole block
  if (!counts) {
    if (threadIdx.x == 0) {
      p.divergences[row] = 0;
    }
    for (std::int64_t i = threadIdx.x; i < p.vocabulary && !p.forward_only; i += blockDim.x) {
      teacher[i] = narrow<T>(0.0F);
    }
    return;
  }
  const Softened own = softened(x, p);
  const Softened taught = softened(static_cast<const T*>(teacher), p);
  const auto of_own = static_cast<float>(static_cast<double>(p.scale) / own.sum);
  const auto of_teacher = static_cast<float>(static_cast<double>(p.scale) / taught.sum);
  float weighted = 0;
  for (std::int64_t i = threadIdx.x; i < p.vocabulary; i += blockDim.x) {
    const float a = taught.exponent(widen(teacher[i]), p.inverse_temperature);
    const float b = own.exponent(widen(x[i]), p.inverse_temperature);
    const float weight = expf(a);
    weighted += weight * (a - b);
    if (!p.forward_only) {
      teacher[i] = narrow<T>(expf(b) * of_own - weight * of_teacher);
    }
  }
  const double sum = block_sum(static_cast<double>(weighted));
  if (threadIdx.x == 0) {
    p.divergences[row] = static_cast<float>(sum / taught.sum - (log(taught.sum) - log(own.sum)));
  }
}

}  // namespace

void distillation(Stream& stream, const Distillation& p) {
  if (p.rows == 0) {
    return;
  }
  by_type(p.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t warps = (p.vocabulary + kWarp - 1) / kWarp;
    const auto threads =
        static_cast<unsigned>(std::min<std::int64_t>(kDistillationThreads, warps * kWarp));
    launch(distillation_kernel<T>, dim3(blocks_of(p.rows, 1)), dim3(threads), 0,
           cuda_stream(stream),
           Lessons<T>{.logits = device_pointer<T>(p.logits),
                      .teacher = device_pointer<T>(p.teacher),
                      .targets = device_pointer<std::int32_t>(p.targets),
                      .divergences = device_pointer<float>(p.divergences),
                      .vocabulary = p.vocabulary,
                      .pitch = p.row(),
                      .inverse_temperature = 1 / p.temperature,
                      .scale = p.scale / p.temperature,
                      .forward_only = p.forward_only});
  });
}

}  // namespace trireme::cuda
