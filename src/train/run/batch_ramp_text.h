// Describes train.batch_ramp for messages and logs. Pure functions.
#pragma once

#include <string>

#include "io/data/batch_schedule.h"

namespace trireme {

// Returns "the batch of 12 sequences from step 21 on"; steps are counted from 1.
std::string describe_stage(const BatchSchedule& batches, std::int64_t stage);
// Returns what to write instead of a stage's size that is not a multiple of `unit`: "the nearest
// sizes that work are 8 and 16: choose multiples of 8 for train.batch_ramp.from and
// train.batch_ramp.by".
std::string nearest_sizes(const BatchSchedule& batches, std::int64_t stage, std::int64_t unit);
// Returns "batch ramp: 4 sequences at first, 4 more every 10 steps, 16 from step 31 on".
std::string describe_ramp(const BatchSchedule& batches);

}  // namespace trireme
