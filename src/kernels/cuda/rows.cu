// Cross entropy over rows of logits: one block per row, which reads the row twice at most. Rows may
// start anywhere (without gaps, a vocabulary of 50257 bf16 leaves them aligned to 2 bytes), so each
// row is read from the 16-byte boundary at or before its start.
#include <algorithm>

#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/entries.h"

namespace trireme::cuda {
namespace {

constexpr int kMostThreads = 512;

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
__device__ float power(float x, float most) {
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

// Computes the statistics of a row in one pass; each thread gets them. Contains barriers.
template <bool kSumLogits, class T>
__device__ Statistics statistics_in_one_pass(const LogitRow<T>& row) {
  constexpr int kAhead = 2;  // groups that are on their way at a time
  float most = -INFINITY;
  float sum = 0;
  float logits = 0;
  int i = row.first();
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
    auto x = row.group(i);
    add_group<false>(x, most, sum, logits);
    if constexpr (kSumLogits) {
#pragma unroll
      for (int j = 0; j < LogitRow<T>::kCount; ++j) {
        logits += row.holds(i + j) ? x.x[j] : 0.0F;
      }
    }
  }
  const float whole = block_max(most);
  const double own = static_cast<double>(sum) * static_cast<double>(power(most, whole));
  return {whole, block_sum(own), kSumLogits ? block_sum(static_cast<double>(logits)) : 0.0};
}

template <class T>
__device__ Statistics statistics_of(const LogitRow<T>& row, bool sum_logits) {
  return sum_logits ? statistics_in_one_pass<true>(row) : statistics_in_one_pass<false>(row);
}

// Slopes holds what the gradients of a row have in common. The target's is computed in double,
// because it is a small difference of large numbers where the model is sure.
struct Slopes {
  float most;
  float weight;     // times exp(x - most): factor / sum
  float shift;      // subtracted from it
  float scale;      // times the difference
  float of_target;  // the target's gradient
};

// Row holds the statistics of a row over its whole vocabulary.
struct Row {
  double most;
  double sum;
  double chosen;  // the target's logit; NaN for an id outside the vocabulary
  double mean;    // mean of all logits, for label smoothing
};

struct Terms {
  double smoothing;
  double z;
  double whole_vocabulary;
  float scale;
};

Terms terms_of(const CrossEntropy& p, std::int64_t whole_vocabulary) {
  return {static_cast<double>(p.terms.label_smoothing), static_cast<double>(p.terms.z_loss),
          static_cast<double>(std::max<std::int64_t>(whole_vocabulary, 1)), p.scale};
}

// Stores the loss of a row and returns the slopes of its gradients.
__device__ Slopes finish(const Row& row, const Terms& terms, float* loss) {
  const double log_sum = log(row.sum);
  const double lse = row.most + log_sum;
  *loss = static_cast<float>((row.most - row.chosen) + log_sum + terms.smoothing * row.chosen -
                             terms.smoothing * row.mean + terms.z * lse * lse);
  const double factor = isnan(row.chosen) ? row.chosen : 1 + 2 * terms.z * lse;
  const double shift = terms.smoothing / terms.whole_vocabulary;
  const double of_target = factor * exp(row.chosen - lse) - (1 - terms.smoothing) - shift;
  const auto scale = static_cast<double>(terms.scale);
  return {static_cast<float>(row.most), static_cast<float>(factor / row.sum),
          static_cast<float>(shift), terms.scale, static_cast<float>(of_target * scale)};
}

// Replaces the row's logits by their gradients. target: an element, or one outside the row.
template <class T>
__device__ void put_gradients(const LogitRow<T>& row, std::int64_t target, const Slopes& slopes) {
  constexpr int kCount = LogitRow<T>::kCount;
  const int special = row.holds(target) ? static_cast<int>(target) : -kCount;
  for (int i = row.first(); i < row.count; i += row.stride()) {
    auto x = row.group(i);
#pragma unroll
    for (float& v : x.x) {
      v = (slopes.weight * power(v, slopes.most) - slopes.shift) * slopes.scale;
    }
    if (special >= i && special < i + kCount) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        x.x[j] = i + j == special ? slopes.of_target : x.x[j];
      }
    }
    row.put(i, x);
  }
}

template <class T>
struct Losses {
  T* logits;
  const std::int32_t* targets;
  float* losses;
  std::int64_t vocabulary;
  std::int64_t pitch;
  Terms terms;
  bool forward_only;
};

template <class T>
__global__ void __launch_bounds__(kMostThreads) cross_entropy_kernel(const Losses<T> p) {
  __shared__ Slopes slopes;
  const std::int64_t number = blockIdx.x;
  const LogitRow<T> row{p.logits + number * p.pitch, static_cast<int>(p.vocabulary)};
  const std::int64_t target = p.targets[number];
  const Statistics own = statistics_of(row, p.terms.smoothing > 0);
  if (threadIdx.x == 0) {
    const double chosen = static_cast<double>(row.holds(target) ? widen(row.data[target]) : NAN);
    const Row whole{static_cast<double>(own.most), own.sum, chosen,
                    own.logits / p.terms.whole_vocabulary};
    slopes = finish(whole, p.terms, p.losses + number);
  }
  __syncthreads();
  if (!p.forward_only) {
    put_gradients(row, target, slopes);
  }
}

template <class T>
struct Part {
  const T* logits;
  const std::int32_t* targets;
  double* statistics;
  std::int64_t vocabulary;
  std::int64_t pitch;
  std::int64_t first_id;
  bool sum_logits;
};

template <class T>
__global__ void __launch_bounds__(kMostThreads) softmax_part_kernel(const Part<T> p) {
  const std::int64_t number = blockIdx.x;
  const LogitRow<const T> row{p.logits + number * p.pitch, static_cast<int>(p.vocabulary)};
  const Statistics own = statistics_of(row, p.sum_logits);
  if (threadIdx.x == 0) {
    const std::int64_t target = p.targets[number] - p.first_id;
    double* const to = p.statistics + number * kRowStatistics;
    to[0] = static_cast<double>(own.most);
    to[1] = own.sum;
    to[2] = static_cast<double>(row.holds(target) ? widen(row.data[target]) : 0.0F);
    to[3] = own.logits;
  }
}

template <class T>
struct Parts {
  Losses<T> own;
  std::int64_t first_id;
  std::int64_t parts;
  std::int64_t rows;
  const double* statistics;  // [parts, rows, kRowStatistics]
};

// Adds the statistics of a row's parts, in their order.
template <class T>
__device__ Row whole_row(const Parts<T>& p, std::int64_t number) {
  const auto part = [&](std::int64_t i) {
    return p.statistics + kRowStatistics * (i * p.rows + number);
  };
  Row whole{part(0)[0], 0, 0, 0};
  for (std::int64_t i = 1; i < p.parts; ++i) {
    whole.most = fmax(whole.most, part(i)[0]);
  }
  for (std::int64_t i = 0; i < p.parts; ++i) {
    whole.sum += part(i)[1] * exp(part(i)[0] - whole.most);
    whole.chosen += part(i)[2];
    whole.mean += part(i)[3];
  }
  whole.mean /= p.own.terms.whole_vocabulary;
  return whole;
}

template <class T>
__global__ void __launch_bounds__(kMostThreads) cross_entropy_of_parts_kernel(const Parts<T> p) {
  __shared__ Slopes slopes;
  const std::int64_t number = blockIdx.x;
  if (threadIdx.x == 0) {
    slopes = finish(whole_row(p, number), p.own.terms, p.own.losses + number);
  }
  __syncthreads();
  if (!p.own.forward_only) {
    const LogitRow<T> row{p.own.logits + number * p.own.pitch, static_cast<int>(p.own.vocabulary)};
    put_gradients(row, p.own.targets[number] - p.first_id, slopes);
  }
}

template <class T>
dim3 threads_for(std::int64_t vocabulary) {
  const std::int64_t groups = vocabulary / kPerAccess<T> + 2;
  return dim3(static_cast<unsigned>(
      std::min<std::int64_t>(kMostThreads, (groups + kWarp - 1) / kWarp * kWarp)));
}

template <class T>
Losses<T> losses_of(const CrossEntropy& p, std::int64_t whole_vocabulary) {
  return {.logits = device_pointer<T>(p.logits),
          .targets = device_pointer<std::int32_t>(p.targets),
          .losses = device_pointer<float>(p.losses),
          .vocabulary = p.vocabulary,
          .pitch = p.row(),
          .terms = terms_of(p, whole_vocabulary),
          .forward_only = p.forward_only};
}

}  // namespace

void cross_entropy(Stream& stream, const CrossEntropy& p) {
  if (p.rows == 0) {
    return;
  }
  by_type(p.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(cross_entropy_kernel<T>, dim3(blocks_of(p.rows, 1)), threads_for<T>(p.vocabulary), 0,
           cuda_stream(stream), losses_of<T>(p, p.vocabulary));
  });
}

void softmax_part(Stream& stream, const SoftmaxPart& p) {
  if (p.rows == 0) {
    return;
  }
  by_type(p.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(softmax_part_kernel<T>, dim3(blocks_of(p.rows, 1)), threads_for<T>(p.vocabulary), 0,
           cuda_stream(stream),
           Part<T>{.logits = device_pointer<T>(p.logits),
                   .targets = device_pointer<std::int32_t>(p.targets),
                   .statistics = device_pointer<double>(p.statistics),
                   .vocabulary = p.vocabulary,
                   .pitch = p.row(),
                   .first_id = p.first_id,
                   .sum_logits = p.sum_logits});
  });
}

void cross_entropy_of_parts(Stream& stream, const CrossEntropyOfParts& p) {
  if (p.own.rows == 0) {
    return;
  }
  by_type(p.own.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(cross_entropy_of_parts_kernel<T>, dim3(blocks_of(p.own.rows, 1)),
           threads_for<T>(p.own.vocabulary), 0, cuda_stream(stream),
           Parts<T>{.own = losses_of<T>(p.own, p.whole_vocabulary),
                    .first_id = p.first_id,
                    .parts = p.parts,
                    .rows = p.own.rows,
                    .statistics = device_pointer<double>(p.statistics)});
  });
}

}  // namespace trireme::cuda
