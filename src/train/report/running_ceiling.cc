#include "src/train/report/running_ceiling.h"

#include <algorithm>

#include "mpi/agreement.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

constexpr std::int64_t kLeastSize = 128;
constexpr std::int64_t kMostSize = 1024;
constexpr std::int64_t kMostSizeOnGpu = 4096;  // smaller ones leave a GPU idle
constexpr double kMostSeconds = 0.1;           // of one product
constexpr double kMostSecondsAtFirst = 5e-3;   // at every start, including one after a failure
constexpr int kFirstRounds = 15;
constexpr double kFirstSeconds = 0.02;
constexpr int kLaterRounds = 2;
constexpr int kProductsOfLaterSample = kLaterRounds + 1;  // the first one is not timed
constexpr double kShareOfTime = 1e-3;

std::int64_t most_size_on_device() {
  return cuda::back_end() == cuda::BackEnd::simulated ? kLeastSize : kMostSizeOnGpu;
}

}  // namespace

RunningCeiling::RunningCeiling(DeviceContext& context, DType dtype, Communicator& world)
    : context_(context), dtype_(dtype), world_(world), size_(kLeastSize) {
  // Slow kernels, such as the reference, take smaller products. The rate of a simulated device
  // means nothing: it always takes the smallest, so that the memory it uses does not depend on its
  // speed.
  const double most_seconds = context.device().is_host() ? kMostSecondsAtFirst : kMostSeconds;
  sample(1);
  while (size_ < most_size() && seconds_of(2 * size_) < most_seconds) {
    size_ *= 2;
    sample(1);
  }
  sample(kFirstRounds);
  flops_ = all_reduce_value(world_, own_, ReduceOp::sum);
}

std::vector<Matmul> RunningCeiling::products(DType dtype) {
  std::vector<Matmul> products;
  for (std::int64_t size = kLeastSize; size <= most_size_on_device(); size *= 2) {
    Matmul product;
    product.m = product.n = product.k = size;
    product.a.dtype = product.b.dtype = product.c.dtype = dtype;
    products.push_back(product);
  }
  return products;
}

std::int64_t RunningCeiling::most_size() const {
  return context_.device().is_host() ? kMostSize : most_size_on_device();
}

// Returns how long a product takes at the best rate so far.
double RunningCeiling::seconds_of(std::int64_t size) const {
  const auto n = static_cast<double>(size);
  return 2 * n * n * n / own_;
}

double RunningCeiling::at_least(double flops) {
  const double affordable = since_.seconds() * kShareOfTime;
  if (context_.device().is_host() && affordable > sample_seconds_) {
    const double larger = seconds_of(2 * size_);
    if (size_ < most_size() &&
        larger < std::min(kMostSeconds, affordable / kProductsOfLaterSample)) {
      size_ *= 2;
    }
    sample(kLaterRounds);
  }
  flops_ = std::max({flops, flops_, all_reduce_value(world_, own_, ReduceOp::sum)});
  return flops_;
}

// Takes the best rate so far: right after the start, memory is still being mapped.
void RunningCeiling::sample(int rounds) {
  const Stopwatch watch;
  {
    Pool memory(context_.device());  // for this sample only
    own_ = std::max(
        own_, measure_product_rate(context_, memory, dtype_, size_, rounds, kFirstSeconds).best);
  }
  sample_seconds_ = watch.seconds();
  since_ = Stopwatch();
}

}  // namespace trireme
