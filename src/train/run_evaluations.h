// RunEvaluations decides when a run evaluates, and acts on the results: it saves and keeps the best
// steps, and ends a run that no longer improves. Decisions depend only on the training counters and
// the configuration, so that they are the same on all ranks and after every restart. Owned by the
// training loop; the parts must outlive it. evaluate() and settle() are collective.
#pragma once

#include <string>

#include "src/train/parts/training_parts.h"

namespace trireme {

class RunEvaluations {
 public:
  explicit RunEvaluations(TrainingParts& parts) : p_(parts) {}

  // Returns whether the latest step is to be evaluated.
  bool due() const;
  // Sets the metrics' losses on all validation sets in nats per token, NaN for those whose
  // evaluation fails. The same on all ranks.
  void evaluate(StepMetrics& metrics);
  // Records the loss of the latest step on the first set in the counters. Saves the step if it is
  // among the best.
  void settle(double loss);
  // Returns why the run ends here, or "".
  std::string early_stop() const;

 private:
  TrainingParts& p_;
};

}  // namespace trireme
