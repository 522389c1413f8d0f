// Defines the loops of the cpu kernels, over vectors with a remainder and over the stream's
// threads. Results never depend on which thread computes what: each output is computed by one
// thread, and sums are taken over blocks whose size depends on the shape alone.
#pragma once

#include <omp.h>

#include "src/device/stream.h"
#include "src/kernels/cpu/isa/vector.h"

namespace trireme::cpu::TRIREME_ISA {

// Says how many lanes of a vector count: all of them, or the first `lanes`.
struct All {};
struct Part {
  std::int64_t lanes;
};

template <class T>
TRIREME_INLINE Floats load(const T* p, All) {
  return load(p);
}
template <class T>
TRIREME_INLINE Floats load(const T* p, Part part) {
  return load_part(p, part.lanes);
}
template <class T>
TRIREME_INLINE void store(T* p, Floats x, All) {
  store(p, x);
}
template <class T>
TRIREME_INLINE void store(T* p, Floats x, Part part) {
  store_part(p, x, part.lanes);
}
// Returns x with the lanes that do not count replaced by `other`.
TRIREME_INLINE Floats kept(Floats x, All, Floats = splat(0)) { return x; }
TRIREME_INLINE Floats kept(Floats x, Part part, Floats other = splat(0)) {
  Ints lane{};
  for (int i = 0; i < kLanes; ++i) {
    lane[i] = i;
  }
  return lane < static_cast<std::int32_t>(part.lanes) ? x : other;
}

// Calls f(i, All or Part) for each vector of n elements.
template <class F>
TRIREME_INLINE void each_vector(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    f(i, All{});
  }
  if (i < n) {
    f(i, Part{n - i});
  }
}

// Returns the sum of the lanes of f(i, All or Part) over all vectors of n elements. Lanes that do
// not count must be zero. There are four chains of vectors; vector number j belongs to chain j % 4.
template <class F>
TRIREME_INLINE float sum_of_vectors(std::int64_t n, F f) {
  Floats chains[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      chains[j] += f(i + j * kLanes, All{});
    }
  }
  for (; i + kLanes <= n; i += kLanes) {
    chains[0] += f(i, All{});
  }
  if (i < n) {
    chains[1] += f(i, Part{n - i});
  }
  return sum_of_lanes((chains[0] + chains[1]) + (chains[2] + chains[3]));
}

// Below about this many elements, a second thread costs more time than it saves.
inline constexpr std::int64_t kElementsForThreads = 16384;

// Calls f(first, last) on ranges that cover [0, n), one per thread, with ends at multiples of
// `grain`. `elements` is the size of the whole work. f must not throw.
template <class F>
void each_range(const Stream& stream, std::int64_t n, std::int64_t grain, std::int64_t elements,
                F f) {
  const int threads = stream.threads();
  if (threads <= 1 || elements < kElementsForThreads || n <= grain) {
    f(std::int64_t{0}, n);
    return;
  }
  const std::int64_t grains = (n + grain - 1) / grain;
#pragma omp parallel num_threads(threads)
  {
    const std::int64_t team = omp_get_num_threads();
    const std::int64_t me = omp_get_thread_num();
    const std::int64_t first = grains * me / team * grain;
    const std::int64_t end = grains * (me + 1) / team * grain;
    const std::int64_t last = end < n ? end : n;
    if (first < last) {
      f(first, last);
    }
  }
}

// Calls f(i, All or Part) for each vector of n elements, on the stream's threads.
template <class F>
TRIREME_INLINE void each_vector(const Stream& stream, std::int64_t n, F f) {
  each_range(stream, n, 16 * kLanes, n, [&](std::int64_t first, std::int64_t last) {
    each_vector(last - first, [&](std::int64_t i, auto part) { f(first + i, part); });
  });
}

// Calls f(T{}) for the element type T of activations, float or bf16.
template <class F>
void by_type(DType dtype, F f) {
  if (dtype == DType::bf16) {
    f(bf16{});
  } else {
    check(dtype == DType::f32, "activations are f32 or bf16");
    f(float{});
  }
}

}  // namespace trireme::cpu::TRIREME_ISA
