// Rows of logits in a kernel: access by groups of 16 bytes, the groups that shared memory holds,
// and the statistics of a row. A block takes one row.
#pragma once

#include <cstdint>
#include <type_traits>

#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/elements.h"

namespace trireme::cuda {

// LogitRow is one row of logits, seen in groups of 16 bytes.
template <class T>
struct LogitRow {
  static constexpr int kCount = kPerAccess<T>;
  T* data;
  int count;

  // Returns the first element of this thread's first group; it may lie before the row.
  __device__ int first() const {
    const auto shift = reinterpret_cast<std::uintptr_t>(data) % 16 / sizeof(T);
    return static_cast<int>(threadIdx.x) * kCount - static_cast<int>(shift);
  }
  __device__ int stride() const { return static_cast<int>(blockDim.x) * kCount; }
  __device__ bool holds(std::int64_t i) const { return i >= 0 && i < count; }
  __device__ bool whole(int i) const { return i >= 0 && i + kCount <= count; }
  // Returns the group at i; elements outside the row are -infinity.
  __device__ Floats<kCount> group(int i) const {
    if (whole(i)) {
      return load<kCount, true>(data + i, kCount);
    }
    Floats<kCount> result;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      result.x[j] = holds(i + j) ? widen(data[i + j]) : -INFINITY;
    }
    return result;
  }
  __device__ void put(int i, const Floats<kCount>& values) const {
    if (whole(i)) {
      store<true>(data + i, values, kCount);
      return;
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      if (holds(i + j)) {
        data[i + j] = narrow<T>(values.x[j]);
      }
    }
  }
};

struct Statistics {
  float most;     // maximum
  double sum;     // of exp(x - most)
  double logits;  // sum of x, if requested
};

// Returns exp(x - most); with most = -infinity, all x are -infinity and the result is 0.
__device__ inline float power(float x, float most) {
  constexpr float kLog2E = 1.4426950408889634F;
  return power_of_two((x - (most == -INFINITY ? 0.0F : most)) * kLog2E);
}

// Adds a group of logits to a thread's statistics, whose sum is relative to the maximum so far.
template <bool kSumLogits, int kCount>
__device__ void add_group(const Floats<kCount>& x, float& most, float& sum, float& logits) {
  float greater = most;
#pragma unroll
  for (const float v : x.x) {
    greater = fmaxf(greater, v);  // ignores NaN, which the sum keeps
  }
  sum *= power(most, greater);
  most = greater;
#pragma unroll
  for (const float v : x.x) {
    sum += power(v, most);
    if constexpr (kSumLogits) {
      logits += v;
    }
  }
}

// Adds a group that may not be whole.
template <bool kSumLogits, class T>
__device__ void add_any_group(const LogitRow<T>& row, int i, float& most, float& sum,
                              float& logits) {
  const auto x = row.group(i);
  add_group<false>(x, most, sum, logits);
  if constexpr (kSumLogits) {
#pragma unroll
    for (int j = 0; j < LogitRow<T>::kCount; ++j) {
      logits += row.holds(i + j) ? x.x[j] : 0.0F;
    }
  }
}

// HeldGroups are the first groups of each thread, which shared memory holds; a thread reads only
// what it copied itself. Groups that are not whole stay where they are.
template <class T>
struct HeldGroups {
  static constexpr int kCount = kPerAccess<T>;
  static constexpr int kStages = 4;  // in which they arrive
  using Group = Chunk<std::remove_const_t<T>, kCount>;
  Group* data;  // [count, blockDim.x]
  int count;

  __device__ int per_stage() const { return (count + kStages - 1) / kStages; }
  __device__ const auto* at(int k) const {
    return data[k * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)].x;
  }
  __device__ void fetch(const LogitRow<T>& row) const {
    for (int k = 0, stage = 0; stage < kStages; ++stage) {
      for (const int end = min((stage + 1) * per_stage(), count); k < end; ++k) {
        const int i = row.first() + k * row.stride();
        if (row.whole(i)) {
          copy_async_16(data + k * static_cast<int>(blockDim.x) + threadIdx.x, row.data + i);
        }
      }
      commit_copies();
    }
  }
  // Returns group k of this thread, which begins at element i.
  __device__ Floats<kCount> group(const LogitRow<T>& row, int k, int i) const {
    return k < count && row.whole(i) ? load<kCount, true>(at(k), kCount) : row.group(i);
  }
};

// Adds the held groups of a stage, and of those after it, as they arrive.
template <bool kSumLogits, int kStage, class T>
__device__ void add_held(const LogitRow<T>& row, const HeldGroups<T>& held, float& most, float& sum,
                         float& logits) {
  if constexpr (kStage < HeldGroups<T>::kStages) {
    wait_copies<HeldGroups<T>::kStages - 1 - kStage>();
    const int end = min((kStage + 1) * held.per_stage(), held.count);
    for (int k = min(kStage * held.per_stage(), held.count); k < end; ++k) {
      const int i = row.first() + k * row.stride();
      if (row.whole(i)) {
        add_group<kSumLogits>(load<LogitRow<T>::kCount, true>(held.at(k), LogitRow<T>::kCount),
                              most, sum, logits);
      } else if (i < row.count) {
        add_any_group<kSumLogits>(row, i, most, sum, logits);
      }
    }
    add_held<kSumLogits, kStage + 1>(row, held, most, sum, logits);
  }
}

// Computes the statistics of a row in one pass; each thread gets them. Contains barriers.
template <bool kSumLogits, class T>
__device__ Statistics statistics_in_one_pass(const LogitRow<T>& row, const HeldGroups<T>& held) {
  constexpr int kAhead = 2;  // groups that are on their way at a time
  float most = -INFINITY;
  float sum = 0;
  float logits = 0;
  add_held<kSumLogits, 0>(row, held, most, sum, logits);
  int i = row.first() + held.count * row.stride();
  for (; row.whole(i) && row.whole(i + (kAhead - 1) * row.stride()); i += kAhead * row.stride()) {
    Floats<LogitRow<T>::kCount> x[kAhead];
#pragma unroll
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      x[ahead] = row.group(i + ahead * row.stride());
    }
#pragma unroll
    for (const auto& each : x) {
      add_group<kSumLogits>(each, most, sum, logits);
    }
  }
  for (; i < row.count; i += row.stride()) {
    add_any_group<kSumLogits>(row, i, most, sum, logits);
  }
  const float whole = block_max(most);
  const double own = static_cast<double>(sum) * static_cast<double>(power(most, whole));
  return {whole, block_sum(own), kSumLogits ? block_sum(static_cast<double>(logits)) : 0.0};
}

template <class T>
__device__ Statistics statistics_of(const LogitRow<T>& row, const HeldGroups<T>& held,
                                    bool sum_logits) {
  return sum_logits ? statistics_in_one_pass<true>(row, held)
                    : statistics_in_one_pass<false>(row, held);
}

}  // namespace trireme::cuda
