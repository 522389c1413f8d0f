// The words that kernels are written in, as ordinary C++: qualifiers, barriers, shuffles, loads and
// stores, atomics on integers. Kernels have no atomics on floating-point numbers here, because
// their results would depend on the order of threads.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <vector_types.h>

#include "src/device/sim/kernel_thread.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
#define __align__(bytes) __attribute__((aligned(bytes)))
// One OS thread runs all blocks, one after another: its static memory is the shared memory of the
// block that runs. thread_local, so that shared_memory.cc can find it and fill it with NaN.
#define __shared__ static thread_local

// What nvcc defines in the preset `cuda`.
#define __CUDA_ARCH_LIST__ 800, 900

inline constexpr int warpSize = sim::kWarpSize;

inline void __syncthreads() { sim::block_barrier(); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) {
  sim::warp_collective(mask, nullptr, [](const sim::Records&) {});
}
// Threads of a simulated block see each other's stores at once.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) { sim::yield_thread(); }
[[noreturn]] inline void __trap() { sim::die("__trap()"); }

namespace sim {

template <class T>
struct Exchange {
  T value;
  T result;
  int from;
};

template <class T>
void perform_exchange(const Records& records) {
  for (void* record : records) {
    if (record != nullptr) {
      auto& own = *static_cast<Exchange<T>*>(record);
      const void* source = records[static_cast<std::size_t>(own.from)];
      if (source == nullptr) {  // an absent lane's value is undefined
        std::memset(&own.result, 0xFF, sizeof own.result);
      } else {
        own.result = static_cast<const Exchange<T>*>(source)->value;
      }
    }
  }
}

template <class T>
T exchange(unsigned mask, T value, int from) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) >= 4, "not a type that CUDA can shuffle");
  Exchange<T> own{value, value, from};
  warp_collective(mask, &own, &perform_exchange<T>);
  return own.result;
}

// Returns the lane to read from, which is the thread's own if `from` is outside the segment.
inline int within_segment(int from, int width) {
  return from / width == lane() / width && from >= 0 ? from : lane();
}

template <class Combine>
unsigned reduce_lanes(unsigned mask, unsigned value, Combine) {
  Exchange<unsigned> own{value, 0, 0};
  warp_collective(mask, &own, [](const Records& records) {
    unsigned all = 0;
    bool first = true;
    for (int at = 0; at < kWarpSize; ++at) {
      if (const void* record = records[static_cast<std::size_t>(at)]; record != nullptr) {
        const unsigned one = static_cast<const Exchange<unsigned>*>(record)->value;
        all = Combine()(first ? Combine::first(one, at) : all, one, at);
        first = false;
      }
    }
    for (void* record : records) {
      if (record != nullptr) {
        static_cast<Exchange<unsigned>*>(record)->result = all;
      }
    }
  });
  return own.result;
}

struct Ballot {
  static unsigned first(unsigned, int) { return 0; }
  unsigned operator()(unsigned all, unsigned one, int at) const {
    return all | (one != 0 ? 1u << at : 0u);
  }
};
struct All {
  static unsigned first(unsigned, int) { return 1; }
  unsigned operator()(unsigned all, unsigned one, int) const { return all & (one != 0 ? 1u : 0u); }
};
struct Sum {
  static unsigned first(unsigned, int) { return 0; }
  unsigned operator()(unsigned all, unsigned one, int) const { return all + one; }
};
struct Most {
  static unsigned first(unsigned one, int) { return one; }
  unsigned operator()(unsigned all, unsigned one, int) const { return all < one ? one : all; }
};

template <class T>
void check_aligned(const T* at) {
  if (reinterpret_cast<std::uintptr_t>(at) % alignof(T) != 0) {
    die("misaligned address: the access is wider than its alignment");
  }
}

}  // namespace sim

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = warpSize) {
  return sim::exchange(mask, value, sim::lane() / width * width + (from & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int flip, int width = warpSize) {
  return sim::exchange(mask, value, sim::within_segment(sim::lane() ^ flip, width));
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
  return sim::exchange(mask, value, sim::within_segment(sim::lane() + static_cast<int>(by), width));
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = warpSize) {
  return sim::exchange(mask, value, sim::within_segment(sim::lane() - static_cast<int>(by), width));
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return sim::reduce_lanes(mask, static_cast<unsigned>(predicate), sim::Ballot());
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return static_cast<int>(sim::reduce_lanes(mask, static_cast<unsigned>(predicate), sim::All()));
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  return sim::reduce_lanes(mask, value, sim::Sum());
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  return sim::reduce_lanes(mask, value, sim::Most());
}

// Loads and stores with hints for the caches.
template <class T>
T __ldg(const T* from) {
  sim::check_aligned(from);
  return *from;
}
template <class T>
T __ldcs(const T* from) {
  return __ldg(from);
}
template <class T>
T __ldcg(const T* from) {
  return __ldg(from);
}
template <class T>
T __ldca(const T* from) {
  return __ldg(from);
}
template <class T>
void __stcs(T* to, std::type_identity_t<T> value) {
  sim::check_aligned(to);
  *to = value;
}
template <class T>
void __stcg(T* to, std::type_identity_t<T> value) {
  __stcs(to, value);
}
template <class T>
void __stwb(T* to, std::type_identity_t<T> value) {
  __stcs(to, value);
}

namespace sim {

template <class T>
concept AtomicInteger =
    std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long>;

// All threads of a grid run on one OS thread: nothing comes between the load and the store.
template <AtomicInteger T>
T replace(T* at, T value) {
  check_aligned(at);
  const T old = *at;
  *at = value;
  return old;
}

}  // namespace sim

template <sim::AtomicInteger T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return sim::replace(at, static_cast<T>(*at + value));
}
template <sim::AtomicInteger T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return sim::replace(at, *at < value ? value : *at);
}
template <sim::AtomicInteger T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return sim::replace(at, value < *at ? value : *at);
}
template <sim::AtomicInteger T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return sim::replace(at, static_cast<T>(*at | value));
}
template <sim::AtomicInteger T>
T atomicAnd(T* at, std::type_identity_t<T> value) {
  return sim::replace(at, static_cast<T>(*at & value));
}
template <sim::AtomicInteger T>
T atomicXor(T* at, std::type_identity_t<T> value) {
  return sim::replace(at, static_cast<T>(*at ^ value));
}
template <sim::AtomicInteger T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return sim::replace(at, value);
}
template <sim::AtomicInteger T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return sim::replace(at, *at == expected ? value : *at);
}
