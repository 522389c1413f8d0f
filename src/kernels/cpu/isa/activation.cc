#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/isa/vector_math.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

constexpr float kSqrt8OverPi = 1.5957691216F;
constexpr float kCubic = 0.044715F;

// Beyond +-10, GELU's factor is 0 or 1 to all bits of a float. Within, |2 u log2(e)| < 126.
TRIREME_INLINE Floats clamped(Floats x) { return min(splat(10.0F), max(splat(-10.0F), x)); }

// Returns 1/2 (1 + tanh(u)) = logistic(2 u) with u = sqrt(2/pi) (x + 0.044715 x^3), for |x| <= 10.
TRIREME_INLINE Floats gelu_factor(Floats x) {
  constexpr float kLinear = kSqrt8OverPi * kLog2E;
  return logistic2(x * (kLinear + kLinear * kCubic * x * x));
}

}  // namespace

void gelu_forward(Stream& stream, View y, ConstView x) {
  by_type(x.dtype, [&]<class T>(T) {
    T* out = as<T>(y);
    const T* in = as<T>(x);
    each_vector(stream, x.count, [=](std::int64_t i, auto part) {
      const Floats a = load(in + i, part);
      store(out + i, a * gelu_factor(clamped(a)), part);
    });
  });
}

void gelu_backward(Stream& stream, View dx, ConstView dy, ConstView x) {
  by_type(x.dtype, [&]<class T>(T) {
    T* out = as<T>(dx);
    const T* upper = as<T>(dy);
    const T* in = as<T>(x);
    each_vector(stream, x.count, [=](std::int64_t i, auto part) {
      const Floats a = clamped(load(in + i, part));
      const Floats s = gelu_factor(a);
      const Floats slope = kSqrt8OverPi + 3.0F * kSqrt8OverPi * kCubic * a * a;
      store(out + i, load(upper + i, part) * (s + a * s * (1.0F - s) * slope), part);
    });
  });
}

void swiglu_forward(Stream& stream, View y, ConstView gate, ConstView up) {
  by_type(y.dtype, [&]<class T>(T) {
    T* out = as<T>(y);
    const T* gates = as<T>(gate);
    const T* ups = as<T>(up);
    each_vector(stream, y.count, [=](std::int64_t i, auto part) {
      const Floats g = load(gates + i, part);
      store(out + i, g * logistic(g) * load(ups + i, part), part);
    });
  });
}

void swiglu_backward(Stream& stream, View dgate, View dup, ConstView dy, ConstView gate,
                     ConstView up) {
  by_type(dy.dtype, [&]<class T>(T) {
    T* dgates = as<T>(dgate);
    T* dups = as<T>(dup);
    const T* upper = as<T>(dy);
    const T* gates = as<T>(gate);
    const T* ups = as<T>(up);
    each_vector(stream, dy.count, [=](std::int64_t i, auto part) {
      const Floats g = load(gates + i, part);
      const Floats u = load(ups + i, part);
      const Floats d = load(upper + i, part);
      const Floats s = logistic(g);
      store(dups + i, d * g * s, part);
      store(dgates + i, d * u * s * (1.0F + g * (1.0F - s)), part);
    });
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
