// Defines the kernels that compute each element of the result from those at the same position:
// activations, sums of arrays, conversions.
#include "src/kernels/cuda/each.h"
#include "src/kernels/cuda/entries.h"

namespace trireme::cuda {
namespace {

constexpr float kSqrt8OverPi = 1.5957691216F;
constexpr float kCubic = 0.044715F;

__device__ float logistic(float x) { return 1.0F / (1.0F + expf(-x)); }

// Beyond +-10, GELU's factor is 0 or 1 to all bits of a float. NaN stays NaN.
__device__ float clamped(float x) { return x > 10.0F ? 10.0F : (x < -10.0F ? -10.0F : x); }

// Returns 1/2 (1 + tanh(u)) = logistic(2 u) with u = sqrt(2/pi) (x + 0.044715 x^3), for |x| <= 10.
__device__ float gelu_factor(float x) {
  return logistic(x * (kSqrt8OverPi + kSqrt8OverPi * kCubic * x * x));
}

template <class T>
struct GeluForward {
  static constexpr int kCount = kPerAccess<T>;
  T* y;
  const T* x;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto a = load<kCount, kWide>(x + i, count - i);
#pragma unroll
    for (float& v : a.x) {
      v *= gelu_factor(clamped(v));
    }
    store<kWide>(y + i, a, count - i);
  }
};

template <class T>
struct GeluBackward {
  static constexpr int kCount = kPerAccess<T>;
  T* dx;
  const T* dy;
  const T* x;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    const auto in = load<kCount, kWide>(x + i, count - i);
    auto d = load<kCount, kWide>(dy + i, count - i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float a = clamped(in.x[j]);
      const float s = gelu_factor(a);
      const float slope = kSqrt8OverPi + 3.0F * kSqrt8OverPi * kCubic * a * a;
      d.x[j] *= s + a * s * (1.0F - s) * slope;
    }
    store<kWide>(dx + i, d, count - i);
  }
};

template <class T>
struct SwigluForward {
  static constexpr int kCount = kPerAccess<T>;
  T* y;
  const T* gate;
  const T* up;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto g = load<kCount, kWide>(gate + i, count - i);
    const auto u = load<kCount, kWide>(up + i, count - i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      g.x[j] = g.x[j] * logistic(g.x[j]) * u.x[j];
    }
    store<kWide>(y + i, g, count - i);
  }
};

template <class T>
struct SwigluBackward {
  static constexpr int kCount = kPerAccess<T>;
  T* dgate;
  T* dup;
  const T* dy;
  const T* gate;
  const T* up;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto g = load<kCount, kWide>(gate + i, count - i);
    auto u = load<kCount, kWide>(up + i, count - i);
    const auto d = load<kCount, kWide>(dy + i, count - i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float s = logistic(g.x[j]);
      const float of_gate = d.x[j] * u.x[j] * s * (1.0F + g.x[j] * (1.0F - s));
      u.x[j] = d.x[j] * g.x[j] * s;
      g.x[j] = of_gate;
    }
    store<kWide>(dup + i, u, count - i);
    store<kWide>(dgate + i, g, count - i);
  }
};

template <class T>
struct Add {
  static constexpr int kCount = kPerAccess<T>;
  T* y;
  const T* x;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto a = load<kCount, kWide>(y + i, count - i);
    const auto b = load<kCount, kWide>(x + i, count - i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      a.x[j] += b.x[j];
    }
    store<kWide>(y + i, a, count - i);
  }
};

template <int kAddends>
struct AddChain {
  static constexpr int kCount = 4;
  float* y;
  const float* x[kAddends];
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    Floats<kCount> addends[kAddends];
#pragma unroll
    for (int j = 0; j < kAddends; ++j) {
      addends[j] = load<kCount, kWide>(x[j] + i, count - i);
    }
    auto all = load<kCount, kWide>(y + i, count - i);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      float sum = addends[kAddends - 1].x[k];
#pragma unroll
      for (int j = kAddends - 2; j >= 0; --j) {
        sum = addends[j].x[k] + sum;
      }
      all.x[k] += sum;
    }
    store<kWide>(y + i, all, count - i);
  }
};

template <int kAddends>
void add_chain_of(Stream& stream, View y, const ConstView* x, int n) {
  if constexpr (kAddends > 1) {
    if (n < kAddends) {
      add_chain_of<kAddends - 1>(stream, y, x, n);
      return;
    }
  }
  AddChain<kAddends> f{};
  f.y = device_pointer<float>(y);
  f.count = y.count;
  f.wide = aligned({f.y});
  for (int j = 0; j < kAddends; ++j) {
    f.x[j] = device_pointer<float>(x[j]);
    f.wide = f.wide && aligned({f.x[j]});
  }
  each(stream, f);
}

template <class To, class From>
struct Cast {
  static constexpr int kCount =
      kPerAccess<From> < kPerAccess<To> ? kPerAccess<From> : kPerAccess<To>;
  To* y;
  const From* x;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    store<kWide>(y + i, load<kCount, kWide>(x + i, count - i), count - i);
  }
};

template <class To, class From>
void cast_as(Stream& stream, const View& y, const ConstView& x) {
  each(stream, Cast<To, From>{.y = device_pointer<To>(y),
                              .x = device_pointer<From>(x),
                              .count = y.count,
                              .wide = aligned({y.data, x.data})});
}

template <class T>
struct Fill {
  static constexpr int kCount = kPerAccess<T>;
  T* y;
  float value;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    Floats<kCount> a;
#pragma unroll
    for (float& v : a.x) {
      v = value;
    }
    store<kWide>(y + i, a, count - i);
  }
};

template <class T>
struct ScaleBy {
  static constexpr int kCount = kPerAccess<T>;
  T* x;
  float factor;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto a = load<kCount, kWide>(x + i, count - i);
#pragma unroll
    for (float& v : a.x) {
      v *= factor;
    }
    store<kWide>(x + i, a, count - i);
  }
};

struct ZeroWhereZero {
  static constexpr int kCount = 4;
  float* x;
  const float* y;
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto a = load<kCount, kWide>(x + i, count - i);
    const auto b = load<kCount, kWide>(y + i, count - i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      a.x[j] = b.x[j] == 0.0F ? 0.0F : a.x[j];
    }
    store<kWide>(x + i, a, count - i);
  }
};

struct Combination {
  static constexpr int kCount = 4;
  float* result;
  float a;
  const float* x;
  float b;
  const float* y;  // or null
  std::int64_t count;
  bool wide;
  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto sum = load<kCount, kWide>(x + i, count - i);
    const auto other = y == nullptr ? Floats<kCount>{} : load<kCount, kWide>(y + i, count - i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      sum.x[j] = a * sum.x[j] + b * other.x[j];
    }
    store<kWide>(result + i, sum, count - i);
  }
};

}  // namespace

void gelu_forward(Stream& stream, View y, ConstView x) {
  by_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    each(stream, GeluForward<T>{.y = device_pointer<T>(y),
                                .x = device_pointer<T>(x),
                                .count = x.count,
                                .wide = aligned({y.data, x.data})});
  });
}

void gelu_backward(Stream& stream, View dx, ConstView dy, ConstView x) {
  by_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    each(stream, GeluBackward<T>{.dx = device_pointer<T>(dx),
                                 .dy = device_pointer<T>(dy),
                                 .x = device_pointer<T>(x),
                                 .count = x.count,
                                 .wide = aligned({dx.data, dy.data, x.data})});
  });
}

void swiglu_forward(Stream& stream, View y, ConstView gate, ConstView up) {
  by_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    each(stream, SwigluForward<T>{.y = device_pointer<T>(y),
                                  .gate = device_pointer<T>(gate),
                                  .up = device_pointer<T>(up),
                                  .count = y.count,
                                  .wide = aligned({y.data, gate.data, up.data})});
  });
}

void swiglu_backward(Stream& stream, View dgate, View dup, ConstView dy, ConstView gate,
                     ConstView up) {
  by_type(dy.dtype, [&](auto zero) {
    using T = decltype(zero);
    each(stream,
         SwigluBackward<T>{.dgate = device_pointer<T>(dgate),
                           .dup = device_pointer<T>(dup),
                           .dy = device_pointer<T>(dy),
                           .gate = device_pointer<T>(gate),
                           .up = device_pointer<T>(up),
                           .count = dy.count,
                           .wide = aligned({dgate.data, dup.data, dy.data, gate.data, up.data})});
  });
}

void add(Stream& stream, View y, ConstView x) {
  by_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    each(stream, Add<T>{.y = device_pointer<T>(y),
                        .x = device_pointer<T>(x),
                        .count = y.count,
                        .wide = aligned({y.data, x.data})});
  });
}

void add_chain(Stream& stream, View y, const ConstView* x, int n) {
  check(n >= 1 && n <= kMaxAddends, "a chain of sums has 1 to kMaxAddends addends");
  add_chain_of<kMaxAddends>(stream, y, x, n);
}

void cast(Stream& stream, View y, ConstView x) {
  if (y.dtype == x.dtype) {
    by_type(y.dtype, [&](auto zero) { cast_as<decltype(zero), decltype(zero)>(stream, y, x); });
  } else if (y.dtype == DType::f32) {
    by_half_type(x.dtype, [&](auto zero) { cast_as<float, decltype(zero)>(stream, y, x); });
  } else {
    by_half_type(y.dtype, [&](auto zero) { cast_as<decltype(zero), float>(stream, y, x); });
  }
}

void fill(Stream& stream, View y, float value) {
  by_type(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    each(stream, Fill<T>{.y = device_pointer<T>(y),
                         .value = value,
                         .count = y.count,
                         .wide = aligned({y.data})});
  });
}

void scale(Stream& stream, View x, float factor) {
  by_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    each(stream, ScaleBy<T>{.x = device_pointer<T>(x),
                            .factor = factor,
                            .count = x.count,
                            .wide = aligned({x.data})});
  });
}

void zero_where_zero(Stream& stream, View x, ConstView y) {
  each(stream, ZeroWhereZero{.x = device_pointer<float>(x),
                             .y = device_pointer<float>(y),
                             .count = x.count,
                             .wide = aligned({x.data, y.data})});
}

void combine(Stream& stream, const Combine& p) {
  each(stream, Combination{.result = device_pointer<float>(p.result),
                           .a = p.a,
                           .x = device_pointer<float>(p.x),
                           .b = p.b,
                           .y = device_pointer<float>(p.y),
                           .count = p.result.count,
                           .wide = aligned({p.result.data, p.x.data, p.y.data})});
}

}  // namespace trireme::cuda
