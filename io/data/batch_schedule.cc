#include "io/data/batch_schedule.h"

#include <algorithm>

#include "src/base/check.h"

namespace trireme {

BatchSchedule::BatchSchedule(std::int64_t full, const BatchRamp& ramp) : full_(full) {
  if (!ramp.is_on()) {
    return;
  }
  check(ramp.from <= full && ramp.by > 0 && ramp.every > 0, "a ramp rises to the full batch");
  ramp_ = ramp;
  increases_ = (full - ramp.from) / ramp.by + ((full - ramp.from) % ramp.by == 0 ? 0 : 1);
}

std::int64_t BatchSchedule::stage_of(std::int64_t number) const {
  return increases_ == 0 ? 0 : std::min(number / ramp_.every, increases_);
}

std::int64_t BatchSchedule::size_of_stage(std::int64_t stage) const {
  return stage == increases_ ? full_ : ramp_.from + stage * ramp_.by;
}

std::int64_t BatchSchedule::size_of(std::int64_t number) const {
  return size_of_stage(stage_of(number));
}

// The complete stages s = 0..stage-1 have from + s * by sequences per batch. No intermediate
// product exceeds number * full.
std::int64_t BatchSchedule::before(std::int64_t number) const {
  const std::int64_t stage = stage_of(number);
  const std::int64_t batches = first_batch(stage);  // in the complete stages
  const std::int64_t rising = stage < 2 ? 0 : batches * ((stage - 1) * ramp_.by) / 2;
  return batches * ramp_.from + rising + (number - batches) * size_of_stage(stage);
}

bool BatchSchedule::has_room_for(std::int64_t number) const {
  std::int64_t sequences = 0;
  return !__builtin_mul_overflow(full_, number, &sequences);
}

// The sizes are from, from + by, from + 2 by, ... and full. If the first two and the last are
// multiples of the unit, all are.
std::optional<std::int64_t> BatchSchedule::stage_not_multiple_of(std::int64_t unit) const {
  for (const std::int64_t stage : {std::int64_t{0}, std::min<std::int64_t>(1, increases_)}) {
    if (size_of_stage(stage) % unit != 0) {
      return stage;
    }
  }
  return full_ % unit == 0 ? std::nullopt : std::optional(increases_);
}

}  // namespace trireme
