#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// Rates holds the factors of AdamW's formula that are the same for all elements.
struct Rates {
  float beta1;
  float beta2;
  float fresh1;  // 1 - beta1
  float fresh2;
  float keep;     // 1 - lr * weight_decay
  float rate;     // lr / (1 - beta1^t)
  float correct;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float gradient_scale;
};

Rates rates(const AdamW& p) {
  const auto t = static_cast<double>(p.step);
  const double left1 = 1 - __builtin_pow(static_cast<double>(p.beta1), t);
  const double left2 = 1 - __builtin_pow(static_cast<double>(p.beta2), t);
  const double decay = static_cast<double>(p.lr) * static_cast<double>(p.weight_decay);
  return {.beta1 = p.beta1,
          .beta2 = p.beta2,
          .fresh1 = 1 - p.beta1,
          .fresh2 = 1 - p.beta2,
          .keep = static_cast<float>(1 - decay),
          .rate = static_cast<float>(static_cast<double>(p.lr) / left1),
          .correct = static_cast<float>(1 / __builtin_sqrt(left2)),
          .epsilon = p.epsilon,
          .gradient_scale = p.gradient_scale};
}

}  // namespace

void adamw(Stream& stream, const AdamW& p) {
  const Rates k = rates(p);
  float* value = as<float>(p.value);
  float* ms = as<float>(p.m);
  float* vs = as<float>(p.v);
  const float* gradient = as<float>(p.gradient);
  bf16* compute = as<bf16>(p.compute);
  each_vector(stream, p.value.count, [=](std::int64_t i, auto part) {
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

void sgd(Stream& stream, const Sgd& p) {
  const auto keep =
      static_cast<float>(1 - static_cast<double>(p.lr) * static_cast<double>(p.weight_decay));
  const float momentum = p.momentum;
  // The step is own * g + of_buffer * b.
  const float own = p.nesterov ? 1.0F : 0.0F;
  const float of_buffer = p.nesterov ? momentum : 1.0F;
  const float lr = p.lr;
  const float scale = p.gradient_scale;
  float* value = as<float>(p.value);
  float* buffers = as<float>(p.buffer);
  const float* gradient = as<float>(p.gradient);
  bf16* compute = as<bf16>(p.compute);
  each_vector(stream, p.value.count, [=](std::int64_t i, auto part) {
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
