// Defines the kernels that update parameters. The expressions are those of
// src/kernels/cpu/isa/optimizer.cc.
#include <cmath>

#include "src/kernels/cuda/each.h"
#include "src/kernels/cuda/entries.h"

namespace trireme::cuda {
namespace {

struct AdamWUpdate {
  static constexpr int kCount = 4;
  float* value;
  float* m;
  float* v;
  const float* gradient;
  bf16* compute;  // or null
  std::int64_t count;
  float beta1;
  float beta2;
  float fresh1;   // 1 - beta1
  float fresh2;   // 1 - beta2
  float keep;     // 1 - lr * weight_decay
  float rate;     // lr / (1 - beta1^t)
  float correct;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_scale;
  bool wide;

  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    const std::int64_t left = count - i;
    auto x = load<kCount, kWide>(value + i, left);
    auto ms = load<kCount, kWide>(m + i, left);
    auto vs = load<kCount, kWide>(v + i, left);
    const auto gradients = load<kCount, kWide>(gradient + i, left);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float g = gradients.x[j] * gradient_scale;
      ms.x[j] = beta1 * ms.x[j] + fresh1 * g;
      vs.x[j] = beta2 * vs.x[j] + fresh2 * g * g;
      const float step = rate * ms.x[j] / (sqrtf(vs.x[j]) * correct + epsilon);
      x.x[j] = keep * x.x[j] - step;
    }
    store<kWide>(m + i, ms, left);
    store<kWide>(v + i, vs, left);
    store<kWide>(value + i, x, left);
    if (compute != nullptr) {
      store<kWide>(compute + i, x, left);
    }
  }
};

struct SgdUpdate {
  static constexpr int kCount = 4;
  float* value;
  float* buffer;
  const float* gradient;
  bf16* compute;  // or null
  std::int64_t count;
  float keep;  // 1 - lr * weight_decay
  float momentum;
  float own;  // the step is own * g + of_buffer * b
  float of_buffer;
  float lr;
  float gradient_scale;
  bool wide;

  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    const std::int64_t left = count - i;
    auto x = load<kCount, kWide>(value + i, left);
    auto b = load<kCount, kWide>(buffer + i, left);
    const auto gradients = load<kCount, kWide>(gradient + i, left);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float g = gradients.x[j] * gradient_scale;
      b.x[j] = momentum * b.x[j] + g;
      const float step = own * g + of_buffer * b.x[j];
      x.x[j] = keep * x.x[j] - lr * step;
    }
    store<kWide>(buffer + i, b, left);
    store<kWide>(value + i, x, left);
    if (compute != nullptr) {
      store<kWide>(compute + i, x, left);
    }
  }
};

struct Approach {
  static constexpr int kCount = 4;
  float* average;
  const float* value;
  std::int64_t count;
  float fresh;
  bool wide;

  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto a = load<kCount, kWide>(average + i, count - i);
    const auto x = load<kCount, kWide>(value + i, count - i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      a.x[j] = a.x[j] + fresh * (x.x[j] - a.x[j]);
    }
    store<kWide>(average + i, a, count - i);
  }
};

}  // namespace

void adamw(Stream& stream, const AdamW& p) {
  const auto t = static_cast<double>(p.step);
  const double left1 = 1 - std::pow(static_cast<double>(p.beta1), t);
  const double left2 = 1 - std::pow(static_cast<double>(p.beta2), t);
  const double decay = static_cast<double>(p.lr) * static_cast<double>(p.weight_decay);
  each(stream, AdamWUpdate{.value = device_pointer<float>(p.value),
                           .m = device_pointer<float>(p.m),
                           .v = device_pointer<float>(p.v),
                           .gradient = device_pointer<float>(p.gradient),
                           .compute = device_pointer<bf16>(p.compute),
                           .count = p.value.count,
                           .beta1 = p.beta1,
                           .beta2 = p.beta2,
                           .fresh1 = 1 - p.beta1,
                           .fresh2 = 1 - p.beta2,
                           .keep = static_cast<float>(1 - decay),
                           .rate = static_cast<float>(static_cast<double>(p.lr) / left1),
                           .correct = static_cast<float>(1 / std::sqrt(left2)),
                           .epsilon = p.epsilon,
                           .gradient_scale = p.gradient_scale,
                           .wide = aligned({p.value.data, p.m.data, p.v.data, p.gradient.data,
                                            p.compute.data})});
}

void sgd(Stream& stream, const Sgd& p) {
  const double decay = static_cast<double>(p.lr) * static_cast<double>(p.weight_decay);
  each(stream,
       SgdUpdate{.value = device_pointer<float>(p.value),
                 .buffer = device_pointer<float>(p.buffer),
                 .gradient = device_pointer<float>(p.gradient),
                 .compute = device_pointer<bf16>(p.compute),
                 .count = p.value.count,
                 .keep = static_cast<float>(1 - decay),
                 .momentum = p.momentum,
                 .own = p.nesterov ? 1.0F : 0.0F,
                 .of_buffer = p.nesterov ? p.momentum : 1.0F,
                 .lr = p.lr,
                 .gradient_scale = p.gradient_scale,
                 .wide = aligned({p.value.data, p.buffer.data, p.gradient.data, p.compute.data})});
}

void moving_average(Stream& stream, const MovingAverage& p) {
  each(stream, Approach{.average = device_pointer<float>(p.average),
                        .value = device_pointer<float>(p.value),
                        .count = p.average.count,
                        .fresh = static_cast<float>(1 - static_cast<double>(p.decay)),
                        .wide = aligned({p.average.data, p.value.data})});
}

}  // namespace trireme::cuda
