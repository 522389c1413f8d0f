#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// Returns how much of an element is left after it has decayed.
template <class Update>
float keep_factor(const Update& p, bool decays) {
  const double decay = static_cast<double>(p.lr) * static_cast<double>(p.weight_decay);
  return decays ? static_cast<float>(1 - decay) : 1.0F;
}

// Calls f(first, n, whether they decay) for each stretch of elements that decay alike.
template <class Update, class F>
void each_stretch(const Update& p, F f) {
  std::int64_t first = 0;
  for (std::size_t turn = 0; first < p.value.count; ++turn) {
    const std::int64_t end = turn < p.turns.size() ? p.turns[turn] : p.value.count;
    f(first, end - first, turn % 2 == 0);
    first = end;
  }
}

// Rates holds the factors of AdamW's formula that are the same for all elements.
struct Rates {
  float beta1;
  float beta2;
  float fresh1;  // 1 - beta1
  float fresh2;
  float keep;     // 1 - lr * weight_decay, or 1 without decay
  float rate;     // lr / (1 - beta1^t)
  float correct;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_scale;
};

Rates rates(const AdamW& p, bool decays) {
  const auto t = static_cast<double>(p.step);
  const double left1 = 1 - __builtin_pow(static_cast<double>(p.beta1), t);
  const double left2 = 1 - __builtin_pow(static_cast<double>(p.beta2), t);
  return {.beta1 = p.beta1,
          .beta2 = p.beta2,
          .fresh1 = 1 - p.beta1,
          .fresh2 = 1 - p.beta2,
          .keep = keep_factor(p, decays),
          .rate = static_cast<float>(static_cast<double>(p.lr) / left1),
          .correct = static_cast<float>(1 / __builtin_sqrt(left2)),
          .epsilon = p.epsilon,
          .gradient_scale = p.gradient_scale};
}

void update(Stream& stream, const AdamW& p, std::int64_t first, std::int64_t n, bool decays) {
  const Rates k = rates(p, decays);
  float* value = as<float>(p.value) + first;
  float* ms = as<float>(p.m) + first;
  float* vs = as<float>(p.v) + first;
  const float* gradient = as<float>(p.gradient) + first;
  bf16* compute = p.compute.empty() ? nullptr : as<bf16>(p.compute) + first;
  each_vector(stream, n, [=](std::int64_t i, auto part) {
    const Floats g = load(gradient + i, part) * k.gradient_scale;
    const Floats m = k.beta1 * load(ms + i, part) + k.fresh1 * g;
    const Floats v = k.beta2 * load(vs + i, part) + k.fresh2 * g * g;
    const Floats step = k.rate * m / (sqrt(v) * k.correct + k.epsilon);
    const Floats x = k.keep * load(value + i, part) - step;
    store(ms + i, m, part);
    store(vs + i, v, part);
    store(value + i, x, part);
    if (compute != nullptr) {
      store(compute + i, x, part);
    }
  });
}

void update(Stream& stream, const Sgd& p, std::int64_t first, std::int64_t n, bool decays) {
  const float keep = keep_factor(p, decays);
  const float momentum = p.momentum;
  // The step is own * g + of_buffer * b.
  const float own = p.nesterov ? 1.0F : 0.0F;
  const float of_buffer = p.nesterov ? momentum : 1.0F;
  const float lr = p.lr;
  const float scale = p.gradient_scale;
  float* value = as<float>(p.value) + first;
  float* buffers = as<float>(p.buffer) + first;
  const float* gradient = as<float>(p.gradient) + first;
  bf16* compute = p.compute.empty() ? nullptr : as<bf16>(p.compute) + first;
  each_vector(stream, n, [=](std::int64_t i, auto part) {
    const Floats g = load(gradient + i, part) * scale;
    const Floats buffer = momentum * load(buffers + i, part) + g;
    const Floats step = own * g + of_buffer * buffer;
    const Floats x = keep * load(value + i, part) - lr * step;
    store(buffers + i, buffer, part);
    store(value + i, x, part);
    if (compute != nullptr) {
      store(compute + i, x, part);
    }
  });
}

}  // namespace

void adamw(Stream& stream, const AdamW& p) {
  each_stretch(p, [&](std::int64_t first, std::int64_t n, bool decays) {
    update(stream, p, first, n, decays);
  });
}

void sgd(Stream& stream, const Sgd& p) {
  each_stretch(p, [&](std::int64_t first, std::int64_t n, bool decays) {
    update(stream, p, first, n, decays);
  });
}

void moving_average(Stream& stream, const MovingAverage& p) {
  const auto fresh = static_cast<float>(1 - static_cast<double>(p.decay));
  float* average = as<float>(p.average);
  const float* value = as<float>(p.value);
  each_vector(stream, p.average.count, [=](std::int64_t i, auto part) {
    const Floats before = load(average + i, part);
    store(average + i, before + fresh * (load(value + i, part) - before), part);
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
