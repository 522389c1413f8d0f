#include "src/train/report/running_ceiling.h"

#include <algorithm>

#include "mpi/agreement.h"

namespace trireme {
namespace {

constexpr std::int64_t kSize = 1024;
constexpr int kFirstRounds = 15;
constexpr double kFirstSeconds = 0.05;  // at every start, including one after a failure
constexpr int kLaterRounds = 2;
constexpr double kShareOfTime = 1e-3;

}  // namespace

RunningCeiling::RunningCeiling(DeviceContext& context, DType dtype, Communicator& world)
    : context_(context), dtype_(dtype), world_(world) {
  sample(kFirstRounds);
  flops_ = all_reduce_value(world_, own_, ReduceOp::sum);
}

double RunningCeiling::at_least(double flops) {
  if (since_.seconds() * kShareOfTime > sample_seconds_) {
    sample(kLaterRounds);
  }
  flops_ = std::max({flops, flops_, all_reduce_value(world_, own_, ReduceOp::sum)});
  return flops_;
}

// Takes the best rate so far: right after the start, memory is still being mapped.
void RunningCeiling::sample(int rounds) {
  const Stopwatch watch;
  Pool passing(context_.device());  // returns its memory to the system when it ends
  own_ = std::max(
      own_, measure_product_rate(context_, passing, dtype_, kSize, rounds, kFirstSeconds).best);
  sample_seconds_ = watch.seconds();
  since_ = Stopwatch();
}

}  // namespace trireme
