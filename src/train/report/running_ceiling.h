// RunningCeiling: the product rate of all ranks that `mfu` divides by. One sample says little:
// other programs and the processor's clock may halve it for seconds. So the largest of many counts,
// taken while the run goes on, and the steps themselves are a sample as well: mfu is never above 1.
// Collective; owned by the training's parts.
#pragma once

#include "mpi/communicator.h"
#include "src/base/stopwatch.h"
#include "src/train/report/ceiling.h"

namespace trireme {

class RunningCeiling {
 public:
  // Samples for up to 50 ms.
  RunningCeiling(DeviceContext& context, DType dtype, Communicator& world);

  // FLOP/s of all ranks together, at least `flops`, which they have just reached. Samples again
  // where the last sample took less than a thousandth of the time since.
  double at_least(double flops);
  double flops() const { return flops_; }

 private:
  void sample(int rounds);

  DeviceContext& context_;
  DType dtype_;
  Communicator& world_;
  double own_ = 0;             // this rank's best sample
  double flops_ = 0;           // the ceiling
  double sample_seconds_ = 0;  // that the last sample took
  Stopwatch since_;            // the last sample
};

}  // namespace trireme
