// RunEvaluations: when a run evaluates, and what follows from the result: best steps are saved and
// kept, and a run that no longer improves ends. Every decision depends on the training counters and
// the configuration alone, so all ranks and all restarts decide alike. Owned by the training loop;
// borrows the parts. loss() and settle() are collective.
#pragma once

#include <string>

#include "src/train/training_parts.h"

namespace trireme {

class RunEvaluations {
 public:
  explicit RunEvaluations(TrainingParts& parts) : p_(parts) {}

  // Whether the step that was done last is to be evaluated.
  bool due() const;
  // Nats per token; NaN if the evaluation fails.
  double loss();
  // Enters the loss of the newest step into the counters.
  void settle(double loss);
  // Why the run ends here, or nothing.
  std::string early_stop() const;

 private:
  TrainingParts& p_;
};

}  // namespace trireme
