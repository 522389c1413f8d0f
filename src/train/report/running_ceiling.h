// RunningCeiling measures the product rate of all ranks, by which `mfu` divides. One sample is
// unreliable, because other programs and the processor's clock may halve it for seconds. Therefore
// the largest of many samples counts, taken while the run continues, and the steps count as
// samples, too, so that mfu is never above 1. Collective; owned by TrainingParts, one thread.
#pragma once

#include <vector>

#include "mpi/communicator.h"
#include "src/base/stopwatch.h"
#include "src/train/report/ceiling.h"

namespace trireme {

class RunningCeiling {
 public:
  // Takes samples for up to 20 ms, with small products on a slow processor.
  RunningCeiling(DeviceContext& context, DType dtype, Communicator& world);

  // Returns the products that samples may compute, without their operands.
  static std::vector<Matmul> products(DType dtype);

  // Returns the FLOP/s of all ranks together, which are at least `flops`, the rate just reached.
  // On a CPU, takes another sample if the last one took less than a thousandth of the time since,
  // of larger products once they take no longer than that.
  double at_least(double flops);
  double flops() const { return flops_; }

 private:
  void sample(int rounds);
  std::int64_t most_size() const;
  double seconds_of(std::int64_t size) const;

  DeviceContext& context_;
  DType dtype_;
  Communicator& world_;
  std::int64_t size_;          // of the products, in rows and columns
  double own_ = 0;             // this rank's best sample
  double flops_ = 0;           // the ceiling
  double sample_seconds_ = 0;  // duration of the last sample
  Stopwatch since_;            // time since the last sample
};

}  // namespace trireme
