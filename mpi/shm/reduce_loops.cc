#include "mpi/shm/reduce_loops.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

namespace trireme {
namespace {

// Elements of a block: two thousand floats a level of the tree stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;

template <class T>
struct Widened {
  using Type = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
template <>
struct Widened<bf16> {
  using Type = float;
  static float load(bf16 x) { return to_float(x); }
  // to_bf16() as a choice between two values, which becomes a vector blend.
  static bf16 store(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40;
    return {static_cast<std::uint16_t>(x != x ? quiet : rounded)};
  }
};

// As in combine.cc.
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

template <class T, class Op, int lo, int hi>
[[gnu::always_inline]] inline auto tree(const T* const* from, std::int64_t i) {
  if constexpr (hi - lo == 1) {
    return Widened<T>::load(from[lo][i]);
  } else {
    constexpr int mid = lo + (hi - lo) / 2;
    return Op::of(tree<T, Op, lo, mid>(from, i), tree<T, Op, mid, hi>(from, i));
  }
}

struct Job {
  const void* const* from;
  void* const* into;
  std::int64_t destinations;  // 1 or N
  std::int64_t count;
};

// An element is read before it is written, and no other depends on it: ivdep.
template <class T, class Op, int N>
[[gnu::always_inline]] inline void fused(const Job& job) {
  std::array<const T*, N> from;
  std::array<T*, N> into;
  for (std::size_t j = 0; j < N; ++j) {
    from[j] = static_cast<const T*>(job.from[j]);
    into[j] = static_cast<T*>(job.into[job.destinations == 1 ? 0 : j]);
  }
  if (job.destinations == 1) {
    T* const only = into[0];
#pragma GCC ivdep
    for (std::int64_t i = 0; i < job.count; ++i) {
      only[i] = Widened<T>::store(tree<T, Op, 0, N>(from.data(), i));
    }
    return;
  }
#pragma GCC ivdep
  for (std::int64_t i = 0; i < job.count; ++i) {
    const T result = Widened<T>::store(tree<T, Op, 0, N>(from.data(), i));
    for (std::size_t j = 0; j < N; ++j) {
      into[j][i] = result;
    }
  }
}

using Fused = void (*)(const Job&);

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

// Any number of sources, a block that fits the stack: into = the tree over from[lo..hi).
template <class T, class Op>
void block_tree(const void* const* from, std::int64_t first, std::int64_t count,
                typename Widened<T>::Type* into, std::size_t lo, std::size_t hi) {
  if (hi - lo == 1) {
    const T* const source = static_cast<const T*>(from[lo]);
    for (std::int64_t i = 0; i < count; ++i) {
      into[i] = Widened<T>::load(source[first + i]);
    }
    return;
  }
  std::array<typename Widened<T>::Type, kBlock> right;
  const std::size_t mid = lo + (hi - lo) / 2;
  block_tree<T, Op>(from, first, count, into, lo, mid);
  block_tree<T, Op>(from, first, count, right.data(), mid, hi);
  for (std::int64_t i = 0; i < count; ++i) {
    into[i] = Op::of(into[i], right[static_cast<std::size_t>(i)]);
  }
}

template <class T, class Op>
void by_blocks(std::span<const void* const> from, std::span<void* const> into, std::int64_t count) {
  std::array<typename Widened<T>::Type, kBlock> sums;
  std::array<T, kBlock> results;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t n = std::min(kBlock, count - first);
    block_tree<T, Op>(from.data(), first, n, sums.data(), 0, from.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      results[i] = Widened<T>::store(sums[i]);
    }
    for (void* const destination : into) {
      std::memcpy(static_cast<T*>(destination) + first, results.data(),
                  static_cast<std::size_t>(n) * sizeof(T));
    }
  }
}

template <class T, class Op>
void reduce_as(std::span<const void* const> from, std::span<void* const> into, std::int64_t count) {
  const Job job{from.data(), into.data(), static_cast<std::int64_t>(into.size()), count};
  const bool fits = into.size() == 1 || into.size() == from.size();
  if (fits && from.size() == 2) {
    run_fused<T, Op, 2>(job);
  } else if (fits && from.size() == 4) {
    run_fused<T, Op, 4>(job);
  } else if (fits && from.size() == 8) {
    run_fused<T, Op, 8>(job);
  } else {
    by_blocks<T, Op>(from, into, count);
  }
}

template <class T>
void reduce_by(std::span<const void* const> from, std::span<void* const> into, std::int64_t count,
               ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return reduce_as<T, Sum>(from, into, count);
    case ReduceOp::max:
      return reduce_as<T, Max>(from, into, count);
    case ReduceOp::min:
      return reduce_as<T, Min>(from, into, count);
  }
}

}  // namespace

void reduce_tree(std::span<const void* const> from, std::span<void* const> into, std::int64_t count,
                 DType dtype, ReduceOp op) {
  check(from.size() >= 2 && !into.empty(), "a reduction is over two ranks or more");
  switch (dtype) {
    case DType::f32:
      return reduce_by<float>(from, into, count, op);
    case DType::bf16:
      return reduce_by<bf16>(from, into, count, op);
    case DType::f64:
      return reduce_by<double>(from, into, count, op);
    case DType::i32:
      return reduce_by<std::int32_t>(from, into, count, op);
    case DType::i64:
      return reduce_by<std::int64_t>(from, into, count, op);
    default:
      check(false, "a reduction is over f32, f64, i32, i64 or bf16");
  }
}

}  // namespace trireme
