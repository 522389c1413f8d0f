// StepRecords keeps the bits of the latest steps, to compare them when the steps are computed
// again: loss and gradient norm, which all ranks have, and the results of this rank alone. Owned by
// Recovery; used by one thread. Takes 16 bytes per micro-batch and step.
#pragma once

#include <deque>
#include <string>

#include "src/train/engine/replica.h"

namespace trireme {

struct StepRecord {
  std::int64_t step = 0;  // number of steps done before it
  double loss = 0;
  double grad_norm = 0;
  MicroBatchBits bits;
};

// Returns the first difference, bit by bit, between what this rank computed both times, as "the
// loss of micro-batch 3 was 1.5 and is now 1.25", or "". `numbers` are those of the micro-batches
// within the global batch.
std::string difference(const StepRecord& first, const StepRecord& again,
                       const std::vector<std::int64_t>& numbers);
// Same, for the values that all ranks have.
std::string difference_of_sums(const StepRecord& first, const StepRecord& again);

class StepRecords {
 public:
  // Keeps the latest `most` steps; 0 means none.
  explicit StepRecords(std::int64_t most) : most_(most) {}

  // Adds a record, which replaces older records of the same step and later ones.
  void add(StepRecord record);
  // Returns nullptr if there is no record of the step.
  const StepRecord* find(std::int64_t step) const;

 private:
  std::int64_t most_;
  std::deque<StepRecord> records_;  // in ascending order of steps
};

}  // namespace trireme
