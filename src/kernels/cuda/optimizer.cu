// Defines the kernels that update parameters. The expressions are those of
// src/kernels/cpu/isa/optimizer.cc.
#include <algorithm>
#include <cmath>

#include "src/kernels/cuda/each.h"
#include "src/kernels/cuda/entries.h"

namespace trireme::cuda {
namespace {

// Decay gives the factor by which weight decay multiplies each element. The arguments of a kernel
// must fit into 4 KB, which bounds the turns of one launch.
constexpr int kMostTurns = 384;
struct Decay {
  float keep;  // 1 - lr * weight_decay
  int turns;
  std::int64_t turn[kMostTurns];

  // Returns the number of turns at or before element i.
  __device__ int turns_until(std::int64_t i) const {
    int low = 0;
    int high = turns;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (turn[middle] <= i) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
  // Stores the factors of kCount elements, from i on.
  template <int kCount>
  __device__ void put(float (&factors)[kCount], std::int64_t i) const {
    int passed = turns_until(i);
    std::int64_t next = passed < turns ? turn[passed] : i + kCount;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      while (next <= i + j) {
        ++passed;
        next = passed < turns ? turn[passed] : i + kCount;
      }
      factors[j] = passed % 2 == 0 ? keep : 1.0F;
    }
  }
};

// T: the type of the copy with which layers compute.
template <class T>
struct AdamWUpdate {
  static constexpr int kCount = 4;
  float* value;
  float* m;
  float* v;
  const float* gradient;
  T* compute;  // or null
  std::int64_t count;
  float beta1;
  float beta2;
  float fresh1;   // 1 - beta1
  float fresh2;   // 1 - beta2
  float rate;     // lr / (1 - beta1^t)
  float correct;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_scale;
  bool wide;
  Decay decay;

  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    const std::int64_t left = count - i;
    auto x = load<kCount, kWide>(value + i, left);
    auto ms = load<kCount, kWide>(m + i, left);
    auto vs = load<kCount, kWide>(v + i, left);
    const auto gradients = load<kCount, kWide>(gradient + i, left);
    float keep[kCount];
    decay.put(keep, i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float g = gradients.x[j] * gradient_scale;
      ms.x[j] = beta1 * ms.x[j] + fresh1 * g;
      vs.x[j] = beta2 * vs.x[j] + fresh2 * g * g;
      const float step = rate * ms.x[j] / (sqrtf(vs.x[j]) * correct + epsilon);
      x.x[j] = keep[j] * x.x[j] - step;
    }
    store<kWide>(m + i, ms, left);
    store<kWide>(v + i, vs, left);
    store<kWide>(value + i, x, left);
    if (compute != nullptr) {
      store<kWide>(compute + i, x, left);
    }
  }
};

template <class T>
struct SgdUpdate {
  static constexpr int kCount = 4;
  float* value;
  float* buffer;
  const float* gradient;
  T* compute;  // or null
  std::int64_t count;
  float momentum;
  float own;  // the step is own * g + of_buffer * b
  float of_buffer;
  float lr;
  float gradient_scale;
  bool wide;
  Decay decay;

  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    const std::int64_t left = count - i;
    auto x = load<kCount, kWide>(value + i, left);
    auto b = load<kCount, kWide>(buffer + i, left);
    const auto gradients = load<kCount, kWide>(gradient + i, left);
    float keep[kCount];
    decay.put(keep, i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float g = gradients.x[j] * gradient_scale;
      b.x[j] = momentum * b.x[j] + g;
      const float step = own * g + of_buffer * b.x[j];
      x.x[j] = keep[j] * x.x[j] - lr * step;
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

// Calls run(first, n, decay) for stretches of elements with at most kMostTurns turns each.
template <class Update, class Run>
void each_stretch(const Update& p, Run run) {
  static_assert(kMostTurns % 2 == 0, "every stretch begins with elements that decay");
  const double decay = static_cast<double>(p.lr) * static_cast<double>(p.weight_decay);
  Decay part{};
  part.keep = static_cast<float>(1 - decay);
  std::size_t used = 0;
  std::int64_t first = 0;
  while (first < p.value.count) {
    const std::size_t left = p.turns.size() - used;
    const std::size_t turns = std::min<std::size_t>(left, kMostTurns);
    const std::int64_t end = turns < left ? p.turns[used + turns] : p.value.count;
    part.turns = static_cast<int>(turns);
    for (std::size_t i = 0; i < turns; ++i) {
      part.turn[i] = p.turns[used + i] - first;
    }
    run(first, end - first, part);
    first = end;
    used += turns;
  }
}

// Returns a view's elements from `first` on; an empty view stays empty.
template <class T, class V>
auto* pointer_from(const V& view, std::int64_t first) {
  auto* const data = device_pointer<T>(view);
  return data == nullptr ? nullptr : data + first;
}

// Calls f with a value of the copy's type; without a copy, with any.
template <class F>
void by_copy(const View& compute, F f) {
  by_half_type(compute.empty() ? DType::bf16 : compute.dtype, f);
}

}  // namespace

void adamw(Stream& stream, const AdamW& p) {
  const auto t = static_cast<double>(p.step);
  const double left1 = 1 - std::pow(static_cast<double>(p.beta1), t);
  const double left2 = 1 - std::pow(static_cast<double>(p.beta2), t);
  by_copy(p.compute, [&](auto zero) {
    using T = decltype(zero);
    each_stretch(p, [&](std::int64_t first, std::int64_t n, const Decay& decay) {
      AdamWUpdate<T> update{.value = pointer_from<float>(p.value, first),
                            .m = pointer_from<float>(p.m, first),
                            .v = pointer_from<float>(p.v, first),
                            .gradient = pointer_from<float>(p.gradient, first),
                            .compute = pointer_from<T>(p.compute, first),
                            .count = n,
                            .beta1 = p.beta1,
                            .beta2 = p.beta2,
                            .fresh1 = 1 - p.beta1,
                            .fresh2 = 1 - p.beta2,
                            .rate = static_cast<float>(static_cast<double>(p.lr) / left1),
                            .correct = static_cast<float>(1 / std::sqrt(left2)),
                            .epsilon = p.epsilon,
                            .gradient_scale = p.gradient_scale,
                            .wide = false,
                            .decay = decay};
      update.wide = aligned({update.value, update.m, update.v, update.gradient, update.compute});
      each(stream, update);
    });
  });
}

void sgd(Stream& stream, const Sgd& p) {
  by_copy(p.compute, [&](auto zero) {
    using T = decltype(zero);
    each_stretch(p, [&](std::int64_t first, std::int64_t n, const Decay& decay) {
      SgdUpdate<T> update{.value = pointer_from<float>(p.value, first),
                          .buffer = pointer_from<float>(p.buffer, first),
                          .gradient = pointer_from<float>(p.gradient, first),
                          .compute = pointer_from<T>(p.compute, first),
                          .count = n,
                          .momentum = p.momentum,
                          .own = p.nesterov ? 1.0F : 0.0F,
                          .of_buffer = p.nesterov ? p.momentum : 1.0F,
                          .lr = p.lr,
                          .gradient_scale = p.gradient_scale,
                          .wide = false,
                          .decay = decay};
      update.wide = aligned({update.value, update.buffer, update.gradient, update.compute});
      each(stream, update);
    });
  });
}

void moving_average(Stream& stream, const MovingAverage& p) {
  each(stream, Approach{.average = device_pointer<float>(p.average),
                        .value = device_pointer<float>(p.value),
                        .count = p.average.count,
                        .fresh = static_cast<float>(1 - static_cast<double>(p.decay)),
                        .wide = aligned({p.average.data, p.value.data})});
}

}  // namespace trireme::cuda
