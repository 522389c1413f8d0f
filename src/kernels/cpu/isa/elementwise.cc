#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

typedef double Doubles __attribute__((vector_size(4 * kLanes)));
typedef float HalfFloats __attribute__((vector_size(2 * kLanes)));
constexpr int kDoubles = kLanes / 2;

TRIREME_INLINE Doubles load_doubles(const float* p) {
  HalfFloats x;
  __builtin_memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Doubles);
}

// Returns the sum of n squares in double: eight chains of vectors, added in order, then the
// remaining elements.
double squares(const float* x, std::int64_t n) {
  constexpr int kChains = 8;
  Doubles chains[kChains] = {};
  std::int64_t i = 0;
  for (; i + kChains * kDoubles <= n; i += kChains * kDoubles) {
#pragma GCC unroll 8
    for (int j = 0; j < kChains; ++j) {
      const Doubles d = load_doubles(x + i + j * kDoubles);
      chains[j] += d * d;
    }
  }
  double sum = 0;
  for (const Doubles& chain : chains) {
    for (int lane = 0; lane < kDoubles; ++lane) {
      sum += chain[lane];
    }
  }
  for (; i < n; ++i) {
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  return sum;
}

template <class To, class From>
void convert(Stream& stream, const View& y, const ConstView& x) {
  To* to = as<To>(y);
  const From* from = as<From>(x);
  each_vector(stream, y.count,
              [=](std::int64_t i, auto part) { store(to + i, load(from + i, part), part); });
}

}  // namespace

void sum(Stream&, View total, ConstView x) {
  const float* data = as<float>(x);
  double all = 0;
  for (std::int64_t i = 0; i < x.count; ++i) {
    all += static_cast<double>(data[i]);
  }
  *as<double>(total) = all;
}

void sums_of_squares(Stream& stream, View results, ConstView x) {
  double* sums = as<double>(results);
  const float* data = as<float>(x);
  const std::int64_t blocks = (x.count + kSumBlock - 1) / kSumBlock;
  each_range(stream, blocks, 1, x.count, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t b = first; b < last; ++b) {
      const std::int64_t left = x.count - b * kSumBlock;
      sums[b] = squares(data + b * kSumBlock, left < kSumBlock ? left : kSumBlock);
    }
  });
}

void add(Stream& stream, View y, ConstView x) {
  by_type(y.dtype, [&]<class T>(T) {
    T* to = as<T>(y);
    const T* from = as<T>(x);
    each_vector(stream, y.count, [=](std::int64_t i, auto part) {
      store(to + i, load(to + i, part) + load(from + i, part), part);
    });
  });
}

void add_chain(Stream& stream, View y, const ConstView* x, int n) {
  struct Chain {
    const float* from[kMaxAddends];
  } chain;
  for (int j = 0; j < n; ++j) {
    chain.from[j] = as<float>(x[j]);
  }
  float* to = as<float>(y);
  each_vector(stream, y.count, [=](std::int64_t i, auto part) {
    auto sum = load(chain.from[n - 1] + i, part);
    for (int j = n - 2; j >= 0; --j) {
      sum = load(chain.from[j] + i, part) + sum;
    }
    store(to + i, load(to + i, part) + sum, part);
  });
}

void cast(Stream& stream, View y, ConstView x) {
  by_type(y.dtype, [&]<class To>(To) {
    by_type(x.dtype, [&]<class From>(From) { convert<To, From>(stream, y, x); });
  });
}

void fill(Stream& stream, View y, float value) {
  by_type(y.dtype, [&]<class T>(T) {
    T* to = as<T>(y);
    each_vector(stream, y.count,
                [=](std::int64_t i, auto part) { store(to + i, splat(value), part); });
  });
}

void scale(Stream& stream, View x, float factor) {
  by_type(x.dtype, [&]<class T>(T) {
    T* to = as<T>(x);
    each_vector(stream, x.count, [=](std::int64_t i, auto part) {
      store(to + i, load(to + i, part) * factor, part);
    });
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
