// Divergence of rows of logits from a teacher's: one block per row, which reads both rows three
// times; the second and third time, most of them are in the L2 cache.
#include <algorithm>

#include "src/base/ignored_target.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/logit_rows.h"

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
__device__ Softened softened(const LogitRow<T>& row, float inverse_temperature) {
  float most = -INFINITY;
  for (int i = row.first(); i < row.count; i += row.stride()) {
    for (const float x : row.group(i).x) {
      most = fmaxf(most, x);
    }
  }
  Softened s{block_max(most), 0};
  float sum = 0;
  for (int i = row.first(); i < row.count; i += row.stride()) {
    const auto group = row.group(i);
#pragma unroll
    for (int j = 0; j < LogitRow<T>::kCount; ++j) {
      sum += row.holds(i + j) ? expf(s.exponent(group.x[j], inverse_temperature)) : 0.0F;
    }
  }
  s.sum = block_sum(static_cast<double>(sum));
  return s;
}

// Lesson turns two logits into a part of the divergence and an element of the gradient.
struct Lesson {
  Softened own;
  Softened taught;
  float inverse_temperature;
  float of_own;
  float of_teacher;
  // Adds the part to `weighted` and returns the element.
  __device__ float learn(float x, float teacher, float& weighted) const {
    const float a = taught.exponent(teacher, inverse_temperature);
    const float b = own.exponent(x, inverse_temperature);
    const float weight = expf(a);
    weighted += weight * (a - b);
    return expf(b) * of_own - weight * of_teacher;
  }
};

// Replaces the teacher's logits by the gradient unless this is a forward pass. Returns the sum of
// this thread's parts. The rows may be aligned differently, and then have no groups in common.
template <class T>
__device__ float learn_row(const LogitRow<const T>& row, const LogitRow<T>& teacher,
                           const Lesson& lesson, bool forward_only) {
  constexpr int kCount = LogitRow<T>::kCount;
  float weighted = 0;
  if (row.first() != teacher.first()) {
    for (int i = static_cast<int>(threadIdx.x); i < row.count; i += static_cast<int>(blockDim.x)) {
      const float learned = lesson.learn(widen(row.data[i]), widen(teacher.data[i]), weighted);
      if (!forward_only) {
        teacher.data[i] = narrow<T>(learned);
      }
    }
    return weighted;
  }
  for (int i = row.first(); i < row.count; i += row.stride()) {
    const auto x = row.group(i);
    auto taught = teacher.group(i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      if (row.holds(i + j)) {
        taught.x[j] = lesson.learn(x.x[j], taught.x[j], weighted);
      }
    }
    if (!forward_only) {
      teacher.put(i, taught);
    }
  }
  return weighted;
}

template <class T>
__global__ void __launch_bounds__(kDistillationThreads) distillation_kernel(const Lessons<T> p) {
  const std::int64_t number = blockIdx.x;
  const LogitRow<const T> row{p.logits + number * p.pitch, static_cast<int>(p.vocabulary)};
  const LogitRow<T> teacher{p.teacher + number * p.pitch, static_cast<int>(p.vocabulary)};
  const bool counts = p.targets[number] != kIgnoredTarget;  // the same for the whole block
  if (!counts) {
    if (threadIdx.x == 0) {
      p.divergences[number] = 0;
    }
    for (int i = teacher.first(); i < teacher.count && !p.forward_only; i += teacher.stride()) {
      teacher.put(i, {});
    }
    return;
  }
  const Softened own = softened(row, p.inverse_temperature);
  const Softened taught = softened(teacher, p.inverse_temperature);
  const double scale = p.scale;
  const Lesson lesson{.own = own,
                      .taught = taught,
                      .inverse_temperature = p.inverse_temperature,
                      .of_own = static_cast<float>(scale / own.sum),
                      .of_teacher = static_cast<float>(scale / taught.sum)};
  const float weighted = learn_row(row, teacher, lesson, p.forward_only);
  const double sum = block_sum(static_cast<double>(weighted));
  if (threadIdx.x == 0) {
    p.divergences[number] = static_cast<float>(sum / taught.sum - (log(taught.sum) - log(own.sum)));
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
    launch(kernel_of<distillation_kernel<T>>, dim3(blocks_of(p.rows, 1)), dim3(threads), 0,
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
