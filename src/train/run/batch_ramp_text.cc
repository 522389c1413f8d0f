#include "src/train/run/batch_ramp_text.h"

#include <fmt/format.h>

#include "src/base/units.h"

namespace trireme {

std::string describe_stage(const BatchSchedule& batches, std::int64_t stage) {
  return fmt::format("the batch of {} sequences from step {} on", batches.size_of_stage(stage),
                     batches.first_batch(stage) + 1);
}

std::string nearest_sizes(const BatchSchedule& batches, std::int64_t stage, std::int64_t unit) {
  const std::int64_t below = batches.size_of_stage(stage) / unit * unit;
  const std::string sizes =
      below == 0 ? fmt::format("the nearest size that works is {}", unit)
                 : fmt::format("the nearest sizes that work are {} and {}", below, below + unit);
  return fmt::format("{}: choose multiples of {} for train.batch_ramp.from and train.batch_ramp.by",
                     sizes, unit);
}

std::string describe_ramp(const BatchSchedule& batches) {
  const std::int64_t last = batches.stages() - 1;
  const std::string growth = last <= 1 ? ""
                                       : fmt::format(" {} more every {},", batches.ramp().by,
                                                     counted(batches.ramp().every, "step"));
  return fmt::format("batch ramp: {} at first,{} {} from step {} on",
                     counted(batches.size_of_stage(0), "sequence"), growth, batches.full(),
                     batches.first_batch(last) + 1);
}

}  // namespace trireme
