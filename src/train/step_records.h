// StepRecords: the bits of the latest steps, to be compared when they are computed again: the loss
// and norm that all ranks know, and what this rank alone has computed. Owned by the training; one
// thread; 16 bytes a micro-batch and step.
#pragma once

#include <deque>
#include <string>

#include "src/train/engine/replica.h"

namespace trireme {

struct StepRecord {
  std::int64_t step = 0;  // the steps done before it
  double loss = 0;
  double grad_norm = 0;
  MicroBatchBits bits;
};

// What differs, bit by bit, of what this rank computed, as "the loss of micro-batch 3 was 1.5 and
// is 1.25"; empty if nothing does. numbers: of the micro-batches within the global batch.
std::string difference(const StepRecord& first, const StepRecord& again,
                       const std::vector<std::int64_t>& numbers);
// The same of what all ranks know.
std::string difference_of_sums(const StepRecord& first, const StepRecord& again);

class StepRecords {
 public:
  // most: steps that are kept, the newest ones; 0: none.
  explicit StepRecords(std::int64_t most) : most_(most) {}

  // In place of an older record of the same step, and of those behind it.
  void add(StepRecord record);
  // Null if the step is not known.
  const StepRecord* find(std::int64_t step) const;

 private:
  std::int64_t most_;
  std::deque<StepRecord> records_;  // of rising steps
};

}  // namespace trireme
