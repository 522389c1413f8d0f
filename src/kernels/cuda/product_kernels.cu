#include "src/kernels/cuda/each.h"
#include "src/kernels/cuda/product_kernels.h"

namespace trireme::cuda {

// Bytes are given by their values.
template <>
__device__ inline std::uint8_t narrow<std::uint8_t>(float x) {
  return static_cast<std::uint8_t>(x);
}

namespace {

constexpr float kOneInE4m3 = 0x38;
constexpr float kOneInE5m2 = 0x3C;

constexpr int kThreads = 256;

template <class T, class B>
struct Bias {
  T* c;
  const B* bias;
  std::int64_t columns;
};

// Block (x, y) takes kThreads groups of columns of row y.
template <class T, class B, bool kWide>
__global__ void __launch_bounds__(kThreads) bias_kernel(const Bias<T, B> p) {
  constexpr int kCount = kPerAccess<T>;
  const std::int64_t row = blockIdx.x;
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * kThreads + threadIdx.x) * kCount;
  if (column >= p.columns) {
    return;
  }
  const std::int64_t left = p.columns - column;
  T* const to = p.c + row * p.columns + column;
  auto x = load<kCount, kWide>(to, left);
  const auto shift = load<kCount, kWide>(p.bias + column, left);
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    x.x[j] += shift.x[j];
  }
  store<kWide>(to, x, left);
}

template <class T, class B>
void enqueue_bias(cudaStream_t stream, const View& c, const ConstView& bias, std::int64_t rows,
                  std::int64_t columns) {
  const bool wide = aligned_rows(columns * static_cast<std::int64_t>(sizeof(T)), {c.data}) &&
                    aligned({bias.data});
  by_bool(wide, [&](auto is_wide) {
    launch(
        kernel_of<bias_kernel<T, B, decltype(is_wide)::value>>,
        dim3(blocks_of(rows, 1), blocks_of(columns, kThreads * kPerAccess<T>)), dim3(kThreads), 0,
        stream,
        Bias<T, B>{.c = device_pointer<T>(c), .bias = device_pointer<B>(bias), .columns = columns});
  });
}

template <class T>
struct Ones {
  T* x;
  std::int64_t count;
  std::int64_t inner;
  std::int64_t k;
  bool k_is_inner;
  std::int64_t first;
  float value;
};

template <class T>
__global__ void __launch_bounds__(kThreads) ones_kernel(const Ones<T> p) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < p.count) {
    const std::int64_t k = p.k_is_inner ? i % p.inner : i / p.inner % p.k;
    p.x[i] = narrow<T>(k >= p.first ? p.value : 0.0F);
  }
}

template <class T>
void enqueue_ones(cudaStream_t stream, const Ones<T>& p) {
  launch(kernel_of<ones_kernel<T>>, dim3(blocks_of(p.count, kThreads)), dim3(kThreads), 0, stream,
         p);
}

}  // namespace

void add_bias(cudaStream_t stream, const View& c, const ConstView& bias, std::int64_t rows,
              std::int64_t columns) {
  by_type(bias.dtype, [&](auto zero) {
    using B = decltype(zero);
    if (c.dtype == bias.dtype) {
      enqueue_bias<B, B>(stream, c, bias, rows, columns);
    } else {
      enqueue_bias<float, B>(stream, c, bias, rows, columns);
    }
  });
}

namespace {

struct Parts {
  static constexpr int kCount = 4;
  float* c;
  const float* parts;
  std::int64_t count;  // of c
  int number;
  bool accumulate;
  bool wide;

  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    const std::int64_t left = count - i;
    auto sum = load<kCount, kWide>(parts + i, left);
    for (int part = 1; part < number; ++part) {
      const auto more = load<kCount, kWide>(parts + part * count + i, left);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        sum.x[j] += more.x[j];
      }
    }
    if (accumulate) {
      const auto old = load<kCount, kWide>(c + i, left);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        sum.x[j] += old.x[j];
      }
    }
    store<kWide>(c + i, sum, left);
  }
};

}  // namespace

void add_parts(Stream& stream, const View& c, const float* parts, int count, bool accumulate) {
  auto* const to = device_pointer<float>(c);
  each(stream, Parts{.c = to,
                     .parts = parts,
                     .count = c.count,
                     .number = count,
                     .accumulate = accumulate,
                     .wide = c.count % Parts::kCount == 0 && aligned({to, parts})});
}

void fill_ones_from(cudaStream_t stream, const View& x, Fp8Format format, const OnesFrom& ones) {
  const auto fill = [&](auto zero, float value) {
    using T = decltype(zero);
    enqueue_ones<T>(stream, {.x = device_pointer<T>(x),
                             .count = x.count,
                             .inner = ones.row,
                             .k = ones.k,
                             .k_is_inner = ones.k_is_inner,
                             .first = ones.first,
                             .value = value});
  };
  if (format != Fp8Format::none) {
    fill(std::uint8_t{}, format == Fp8Format::e4m3 ? kOneInE4m3 : kOneInE5m2);
  } else {
    by_type(x.dtype, [&](auto zero) { fill(zero, 1); });
  }
}

void fill_with(cudaStream_t stream, const View& x, float value) {
  by_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    enqueue_ones<T>(stream, {.x = device_pointer<T>(x),
                             .count = x.count,
                             .inner = 1,
                             .k = 1,
                             .k_is_inner = false,
                             .first = 0,
                             .value = value});
  });
}

}  // namespace trireme::cuda
