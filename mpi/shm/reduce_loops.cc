#include "mpi/shm/reduce_loops.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include <emmintrin.h>

#include "src/base/floating_point.h"
#include "src/base/tree_middle.h"

namespace trireme {
namespace {

// Elements of a block. One block per level of the tree, 4 KiB of f32, stays in the first-level
// cache.
constexpr std::int64_t kBlock = 1024;

// Selects the upper half of a float's bits, which is a bf16. All values that are added are such
// floats, so the lower half of a resulting NaN is zero and rounding keeps it. Unlike to_bf16(),
// this needs no special case.
constexpr std::uint32_t kUpper = 0xFFFF0000;

std::uint32_t rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits + 0x7FFF + ((bits >> 16) & 1);
}

// The type in which values of a type are added, and the conversions.
template <class T>
struct Format {
  using Wide = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
template <>
struct Format<bf16> {
  using Wide = float;
  static float load(bf16 x) { return to_float(x); }
  static bf16 store(float x) { return {static_cast<std::uint16_t>(rounded(x) >> 16)}; }
};
template <class T>
using Wide = typename Format<T>::Wide;

// These operations are as in combine.cc.
struct Sum {
  template <class T>
  static T of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};
struct Max {
  template <class T>
  static T of(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Min {
  template <class T>
  static T of(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

// Returns the reduction of value(lo) ... value(hi-1) in the order of the canonical tree.
template <class Op, int lo, int hi, class Value>
[[gnu::always_inline]] inline auto tree(Value value) {
  if constexpr (hi - lo == 1) {
    return value(lo);
  } else {
    constexpr int mid = tree_middle(lo, hi);
    return Op::of(tree<Op, lo, mid>(value), tree<Op, mid, hi>(value));
  }
}

enum class Stores : std::uint8_t { cached, bypass_caches };

struct Job {
  const void* const* from;
  void* const* into;
  std::int64_t destinations;  // 1 or N
  std::int64_t count;
  Stores stores = Stores::cached;
};

// The size of a cache line, the unit of stores that bypass the caches.
constexpr std::int64_t kLine = 64;

[[gnu::always_inline]] inline void stream_line(const std::byte* line, std::byte* to) {
  for (std::int64_t i = 0; i < kLine; i += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(line + i)));
  }
}

// Makes one pass over `count` units of U, from byte `first` on. The units are independent: each is
// read before it is written, and no other depends on it. Stores that bypass the caches write whole
// lines only.
template <class U, int N, class Unit>
[[gnu::always_inline]] inline void pass(const Job& job, std::int64_t first, std::int64_t count,
                                        Unit unit) {
  std::array<const std::byte*, N> from;
  std::array<std::byte*, N> into;
  for (std::size_t j = 0; j < N; ++j) {
    from[j] = static_cast<const std::byte*>(job.from[j]) + first;
    into[j] = static_cast<std::byte*>(job.into[job.destinations == 1 ? 0 : j]) + first;
  }
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(U));
  const auto at = [&](std::int64_t i) __attribute__((always_inline)) {
    return unit([&from, i ](int j) __attribute__((always_inline)) {
      U value;
      std::memcpy(&value, from[static_cast<std::size_t>(j)] + i * kBytes, sizeof(U));
      return value;
    });
  };
  if (job.stores == Stores::bypass_caches) {
    constexpr std::int64_t kUnits = kLine / kBytes;
    alignas(kLine) std::array<std::byte, kLine> line;
    for (std::int64_t i = 0; i < count; i += kUnits) {
#pragma GCC ivdep
      for (std::int64_t k = 0; k < kUnits; ++k) {
        const U result = at(i + k);
        std::memcpy(line.data() + k * kBytes, &result, sizeof(U));
      }
      for (std::int64_t j = 0; j < job.destinations; ++j) {
        stream_line(line.data(), into[static_cast<std::size_t>(j)] + i * kBytes);
      }
    }
    return;
  }
  if (job.destinations == 1) {
    std::byte* const only = into[0];
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const U result = at(i);
      std::memcpy(only + i * kBytes, &result, sizeof(U));
    }
    return;
  }
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const U result = at(i);
    for (std::size_t j = 0; j < N; ++j) {
      std::memcpy(into[j] + i * kBytes, &result, sizeof(U));
    }
  }
}

template <class T, class Op, int N>
[[gnu::always_inline]] inline void by_elements(const Job& job, std::int64_t first) {
  const auto element = [](auto value) __attribute__((always_inline)) {
    return Format<T>::store(tree<Op, 0, N>([&](int j) __attribute__((always_inline)) {
      return Format<T>::load(value(j));
    }));
  };
  pass<T, N>(job, first * static_cast<std::int64_t>(sizeof(T)), job.count - first, element);
}

// Reduces two bf16 at once, each in its half of a 32-bit word, which needs no shuffles.
template <class Op, int N>
[[gnu::always_inline]] inline void by_pairs(const Job& job) {
  const auto pair = [](auto value) __attribute__((always_inline)) {
    const float upper = tree<Op, 0, N>([&](int j) __attribute__((always_inline)) {
      return std::bit_cast<float>(value(j) & kUpper);
    });
    const float lower = tree<Op, 0, N>([&](int j) __attribute__((always_inline)) {
      return std::bit_cast<float>(value(j) << 16);
    });
    return (rounded(upper) & kUpper) | (rounded(lower) >> 16);
  };
  pass<std::uint32_t, N>(job, 0, job.count / 2, pair);
}

template <class T, class Op, int N>
[[gnu::always_inline]] inline void fused(const Job& job) {
  if constexpr (std::is_same_v<T, bf16>) {
    by_pairs<Op, N>(job);
    by_elements<T, Op, N>(job, job.count / 2 * 2);
  } else {
    by_elements<T, Op, N>(job, 0);
  }
}

template <class T, class Op, int N>
void fused_baseline(const Job& job) {
  fused<T, Op, N>(job);
}
template <class T, class Op, int N>
[[gnu::target("avx2")]] void fused_avx2(const Job& job) {
  fused<T, Op, N>(job);
}
template <class T, class Op, int N>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void fused_avx512(const Job& job) {
  fused<T, Op, N>(job);
}

template <class T, class Op, int N>
void run_fused(const Job& job) {
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    fused_avx512<T, Op, N>(job);
  } else if (__builtin_cpu_supports("avx2")) {
    fused_avx2<T, Op, N>(job);
  } else {
    fused_baseline<T, Op, N>(job);
  }
}

// Handles any number of sources, for a block that fits the stack: sets `into` to the tree over
// from[lo..hi).
template <class T, class Op>
void block_tree(const void* const* from, std::int64_t first, std::int64_t count, Wide<T>* into,
                std::size_t lo, std::size_t hi) {
  if (hi - lo == 1) {
    const T* const source = static_cast<const T*>(from[lo]);
    for (std::int64_t i = 0; i < count; ++i) {
      into[i] = Format<T>::load(source[first + i]);
    }
    return;
  }
  std::array<Wide<T>, kBlock> right;
  const std::size_t mid = tree_middle(lo, hi);
  block_tree<T, Op>(from, first, count, into, lo, mid);
  block_tree<T, Op>(from, first, count, right.data(), mid, hi);
  for (std::int64_t i = 0; i < count; ++i) {
    into[i] = Op::of(into[i], right[static_cast<std::size_t>(i)]);
  }
}

template <class T, class Op>
void by_blocks(std::span<const void* const> from, std::span<void* const> into, std::int64_t count) {
  std::array<Wide<T>, kBlock> sums;
  std::array<T, kBlock> results;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, count - first);
    block_tree<T, Op>(from.data(), first, n, sums.data(), 0, from.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      results[i] = Format<T>::store(sums[i]);
    }
    for (void* const destination : into) {
      std::memcpy(static_cast<T*>(destination) + first, results.data(),
                  static_cast<std::size_t>(n) * sizeof(T));
    }
  }
}

// Returns whether there are fused loops for these numbers of sources and destinations.
bool is_fused(std::size_t from, std::size_t into) {
  return (into == 1 || into == from) && (from == 2 || from == 4 || from == 8);
}

template <class T, class Op>
void reduce_as(const Job& job, std::size_t sources) {
  const auto destinations = static_cast<std::size_t>(job.destinations);
  if (!is_fused(sources, destinations)) {
    by_blocks<T, Op>({job.from, sources}, {job.into, destinations}, job.count);
  } else if (sources == 2) {
    run_fused<T, Op, 2>(job);
  } else if (sources == 4) {
    run_fused<T, Op, 4>(job);
  } else {
    run_fused<T, Op, 8>(job);
  }
}

template <class T>
void reduce_by(const Job& job, std::size_t sources, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return reduce_as<T, Sum>(job, sources);
    case ReduceOp::max:
      return reduce_as<T, Max>(job, sources);
    case ReduceOp::min:
      return reduce_as<T, Min>(job, sources);
  }
}

void run(const Job& job, std::size_t sources, DType dtype, ReduceOp op) {
  restore_floating_point();  // a library may have changed it on this thread
  switch (dtype) {
    case DType::f32:
      return reduce_by<float>(job, sources, op);
    case DType::bf16:
      return reduce_by<bf16>(job, sources, op);
    case DType::f64:
      return reduce_by<double>(job, sources, op);
    case DType::i32:
      return reduce_by<std::int32_t>(job, sources, op);
    case DType::i64:
      return reduce_by<std::int64_t>(job, sources, op);
    default:
      check(false, "a reduction is over f32, f64, i32, i64 or bf16");
  }
}

// Returns the number of bytes up to the next cache line.
std::int64_t bytes_to_line(const void* data) {
  const auto past = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(data) % kLine);
  return (kLine - past) % kLine;
}

}  // namespace

void reduce_tree(std::span<const void* const> from, std::span<void* const> into, std::int64_t count,
                 DType dtype, ReduceOp op) {
  check(from.size() >= 2 && !into.empty(), "a reduction is over two ranks or more");
  run({from.data(), into.data(), static_cast<std::int64_t>(into.size()), count}, from.size(), dtype,
      op);
}

// Whole lines bypass the caches; the elements before and after them are stored normally.
void reduce_tree_bypassing_caches(std::span<const void* const> from, std::span<void* const> into,
                                  std::int64_t count, DType dtype, ReduceOp op) {
  check(from.size() >= 2 && !into.empty(), "a reduction is over two ranks or more");
  const std::int64_t size = size_of(dtype);
  const std::int64_t head = std::min(count, bytes_to_line(into[0]) / size);
  const std::int64_t lines = (count - head) * size / kLine;
  const bool aligned = std::all_of(into.begin(), into.end(), [&](const void* to) {
    return bytes_to_line(static_cast<const std::byte*>(to) + head * size) == 0;
  });
  if (!aligned || lines == 0 || !is_fused(from.size(), into.size())) {
    return reduce_tree(from, into, count, dtype, op);
  }
  std::vector<const void*> sources(from.begin(), from.end());
  std::vector<void*> destinations(into.begin(), into.end());
  const auto part = [&](std::int64_t n, Stores stores) {
    run({sources.data(), destinations.data(), static_cast<std::int64_t>(into.size()), n, stores},
        sources.size(), dtype, op);
    for (const void*& source : sources) {
      source = static_cast<const std::byte*>(source) + n * size;
    }
    for (void*& destination : destinations) {
      destination = static_cast<std::byte*>(destination) + n * size;
    }
  };
  const std::int64_t middle = lines * kLine / size;
  part(head, Stores::cached);
  part(middle, Stores::bypass_caches);
  _mm_sfence();
  part(count - head - middle, Stores::cached);
}

}  // namespace trireme
