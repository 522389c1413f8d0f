// BatchSchedule says how many sequences each global batch of a run has, and how many all batches
// before it have. Both are pure functions of the batch's number in the data order. All batches have
// one size, unless a ramp (train.batch_ramp) makes the first ones smaller. A stage is a series of
// consecutive batches of one size:
//
//   from 4, by 4, every 10, full 14        stage      0      1       2       3
//                                          batches  0..9  10..19  20..29  30..
//                                          size       4      8      12      14
#pragma once

#include <cstdint>
#include <optional>

namespace trireme {

struct BatchRamp {
  std::int64_t from = 0;   // sequences in each of the first batches; 0 means no ramp
  std::int64_t by = 0;     // sequences that each stage adds
  std::int64_t every = 0;  // batches per stage

  bool is_on() const { return from > 0; }
};

class BatchSchedule {
 public:
  // Every batch has `full` sequences, at least 1.
  BatchSchedule(std::int64_t full) : full_(full) {}
  // Preconditions if the ramp is on: ramp.from <= full, ramp.by > 0, ramp.every > 0.
  BatchSchedule(std::int64_t full, const BatchRamp& ramp);

  // Returns the number of sequences in the largest batches.
  std::int64_t full() const { return full_; }
  const BatchRamp& ramp() const { return ramp_; }
  // Returns the number of sequences in batch `number`.
  std::int64_t size_of(std::int64_t number) const;
  // Returns the number of sequences in batches [0, number). Precondition: has_room_for(number).
  std::int64_t before(std::int64_t number) const;
  // Returns whether the number of sequences in `number` batches fits into 63 bits.
  bool has_room_for(std::int64_t number) const;

  std::int64_t stages() const { return 1 + increases_; }
  std::int64_t first_batch(std::int64_t stage) const { return stage * ramp_.every; }
  std::int64_t size_of_stage(std::int64_t stage) const;

  // Returns the first stage whose size is not a multiple of `unit`, or nothing if all sizes are.
  std::optional<std::int64_t> stage_not_multiple_of(std::int64_t unit) const;

 private:
  std::int64_t stage_of(std::int64_t number) const;

  std::int64_t full_;
  BatchRamp ramp_;
  std::int64_t increases_ = 0;  // number of stages after the first
};

}  // namespace trireme
