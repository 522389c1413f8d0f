// Rank is shared by the tests of the reducer: it reduces gradients made by a hash, under a plan.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "src/base/philox.h"
#include "src/parallel/gradient_reducer.h"
#include "tests/parallel/test_parameters.h"

namespace trireme {

inline const std::vector<std::int64_t> kSizes = {3001, 7, 640, 1, 129, 2000, 33};
inline constexpr std::int64_t kSmallBucket = 4 * 700;

// Returns element i of the gradient of parameter id on micro-batch m, in step `step`.
inline float gradient(int step, std::int64_t m, ParameterId id, std::int64_t i) {
  const std::uint64_t bits = mix64(mix64(static_cast<std::uint64_t>(i * 1000 + m)) ^
                                   static_cast<std::uint64_t>(step * 100 + id));
  return static_cast<float>(
      std::ldexp(static_cast<double>(bits >> 40) * 0x1p-24 - 0.5, static_cast<int>(bits % 12)));
}

// An Order is one in which backward hands over gradients.
enum class Order { backward, tied, forward };

inline std::vector<ParameterId> order_of(Order order) {
  std::vector<ParameterId> ids(kSizes.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (order == Order::backward) {
    std::reverse(ids.begin(), ids.end());
  } else if (order == Order::tied) {
    std::reverse(ids.begin(), ids.end());
    std::rotate(ids.begin(), ids.begin() + 3, ids.end() - 1);
  }
  return ids;
}

struct Plan {
  std::int64_t micro_batches;
  Reproducibility reproducibility = Reproducibility::elastic;
  Order order = Order::backward;
  std::int64_t bucket_bytes = kSmallBucket;
  int level = 0;
  // This many micro-batches are open at once. The gradients of p0 come after all their other
  // gradients.
  std::size_t open = 1;
  int steps = 2;
  std::vector<std::int64_t> counts = {};  // micro-batches of each step; empty: micro_batches of all

  std::int64_t micro_batches_of(int step) const {
    return counts.empty() ? micro_batches : counts[static_cast<std::size_t>(step)];
  }
};

// A Rank has everything that one rank reduces with.
struct Rank {
  Communicator& comm;
  Kernels kernels = adding_kernels();
  DeviceContext context{kernels, 1};
  std::unique_ptr<ParameterStore> store;
  ZeroLayout layout;
  GradientReducer reducer;

  Rank(Communicator& dp, const std::vector<std::int64_t>& sizes, const Plan& plan)
      : comm(dp),
        store(declare_parameters(context, sizes)),
        layout(*store, plan.level, {dp.size(), dp.rank()},
               cut_into_buckets(*store, plan.bucket_bytes)),
        reducer(layout, {dp, context}, plan.reproducibility) {}

  void give(GradientSink& sink, int step, std::int64_t m, ParameterId id) {
    const View part = sink.gradient(id);
    for (std::int64_t i = 0; i < part.count; ++i) {
      as<float>(part)[i] = gradient(step, m, id, i);
    }
    sink.ready(id);
  }
  void one_step(int step, const Plan& plan) {
    std::vector<std::pair<std::int64_t, GradientSink*>> late;
    reducer.begin_step(plan.micro_batches_of(step));
    for (const std::int64_t m : reducer.micro_batches()) {
      GradientSink& sink = reducer.open(m);
      for (const ParameterId id : order_of(plan.order)) {
        if (plan.open == 1 || id != 0) {
          give(sink, step, m, id);
        }
      }
      late.emplace_back(m, &sink);
      if (late.size() == plan.open || m == reducer.micro_batches().back()) {
        // The last one comes first, so that its sum waits for those before it.
        for (; plan.open > 1 && !late.empty(); late.pop_back()) {
          give(*late.back().second, step, late.back().first, 0);
        }
        late.clear();
      }
    }
    reducer.finish_step();
  }
};

}  // namespace trireme
