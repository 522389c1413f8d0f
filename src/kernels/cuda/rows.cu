// Cross entropy over rows of logits: one block per row, which holds as much of the row in shared
// memory as leaves room for a second block beside it, and reads the rest twice. Rows may start
// anywhere (without gaps, a vocabulary of 50257 bf16 leaves them aligned to 2 bytes), so each row
// is read from the 16-byte boundary at or before its start.
#include <algorithm>

#include "src/base/ignored_target.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/logit_rows.h"

namespace trireme::cuda {
namespace {

constexpr int kMostThreads = 512;

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

// Does the same for a row whose target is ignored, in place of what finish() has done. A branch
// that left the kernel before would cost registers that it does not have.
__device__ Slopes ignored(const Slopes& slopes, float* loss) {
  *loss = 0;
  return {slopes.most, 0, 0, 0, 0};
}

// Replaces the row's logits by their gradients. target: an element, or one outside the row.
template <class T>
__device__ void put_gradients(const LogitRow<T>& row, const HeldGroups<T>& held,
                              std::int64_t target, const Slopes& slopes) {
  constexpr int kCount = LogitRow<T>::kCount;
  const int special = row.holds(target) ? static_cast<int>(target) : -kCount;
  int k = 0;
  for (int i = row.first(); i < row.count; i += row.stride(), ++k) {
    auto x = held.group(row, k, i);
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
  int held;  // groups per thread in shared memory
};

template <class T>
__global__ void __launch_bounds__(kMostThreads) cross_entropy_kernel(const Losses<T> p) {
  __shared__ Slopes slopes;
  const std::int64_t number = blockIdx.x;
  const LogitRow<T> row{p.logits + number * p.pitch, static_cast<int>(p.vocabulary)};
  const HeldGroups<T> held{dynamic_shared<typename HeldGroups<T>::Group>(), p.held};
  held.fetch(row);
  const std::int64_t target = p.targets[number];
  const float logit = threadIdx.x == 0 && row.holds(target) ? widen(row.data[target]) : NAN;
  const Statistics own = statistics_of(row, held, p.terms.smoothing > 0);
  if (threadIdx.x == 0) {
    const auto chosen = static_cast<double>(logit);
    const Row whole{static_cast<double>(own.most), own.sum, chosen,
                    own.logits / p.terms.whole_vocabulary};
    slopes = finish(whole, p.terms, p.losses + number);
    if (target == kIgnoredTarget) {
      slopes = ignored(slopes, p.losses + number);
    }
  }
  __syncthreads();
  if (!p.forward_only) {
    put_gradients(row, held, target, slopes);
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
  const Statistics own = statistics_of(row, HeldGroups<const T>{}, p.sum_logits);
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
    if (p.own.targets[number] == kIgnoredTarget) {
      slopes = ignored(slopes, p.own.losses + number);
    }
  }
  __syncthreads();
  if (!p.own.forward_only) {
    const LogitRow<T> row{p.own.logits + number * p.own.pitch, static_cast<int>(p.own.vocabulary)};
    put_gradients(row, HeldGroups<T>{}, p.own.targets[number] - p.first_id, slopes);
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
          .forward_only = p.forward_only,
          .held = 0};
}

// Returns how many groups of each thread shared memory holds, so that a multiprocessor has room for
// two blocks.
template <class T>
int held_groups(std::int64_t vocabulary, unsigned threads) {
  constexpr std::int64_t kReserved = 1024;  // bytes per block, which CUDA takes for itself
  constexpr std::int64_t kStatic = 1024;    // bytes per block, more than sums and slopes take
  const std::int64_t half = (most_shared_bytes() - kReserved) / 2;
  const std::int64_t groups = vocabulary / kPerAccess<T> + 2;
  return static_cast<int>(
      std::min((half - kStatic) / (std::int64_t{threads} * 16), (groups + threads - 1) / threads));
}

}  // namespace

void cross_entropy(Stream& stream, const CrossEntropy& p) {
  if (p.rows == 0) {
    return;
  }
  by_type(p.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    const dim3 threads = threads_for<T>(p.vocabulary);
    Losses<T> losses = losses_of<T>(p, p.vocabulary);
    losses.held = held_groups<T>(p.vocabulary, threads.x);
    const std::size_t shared = static_cast<std::size_t>(losses.held) * threads.x * 16;
    permit_shared(kernel_of<cross_entropy_kernel<T>>, shared);
    launch(kernel_of<cross_entropy_kernel<T>>, dim3(blocks_of(p.rows, 1)), threads, shared,
           cuda_stream(stream), losses);
  });
}

void softmax_part(Stream& stream, const SoftmaxPart& p) {
  if (p.rows == 0) {
    return;
  }
  by_type(p.logits.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch(kernel_of<softmax_part_kernel<T>>, dim3(blocks_of(p.rows, 1)),
           threads_for<T>(p.vocabulary), 0, cuda_stream(stream),
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
    launch(kernel_of<cross_entropy_of_parts_kernel<T>>, dim3(blocks_of(p.own.rows, 1)),
           threads_for<T>(p.own.vocabulary), 0, cuda_stream(stream),
           Parts<T>{.own = losses_of<T>(p.own, p.whole_vocabulary),
                    .first_id = p.first_id,
                    .parts = p.parts,
                    .rows = p.own.rows,
                    .statistics = device_pointer<double>(p.statistics)});
  });
}

}  // namespace trireme::cuda
