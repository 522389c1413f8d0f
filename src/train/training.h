// Training executes a run from its configuration to its last step: it builds all parts
// (training_parts.h), resumes, loops, saves, and stops when asked. All collective calls of a run
// happen here, in the same order on every rank. There is one per process, used by the main thread.
#pragma once

#include <memory>
#include <string>

#include "src/train/parts/training_host.h"
#include "src/train/run/run_config.h"

namespace trireme {

struct TrainingOutcome {
  std::int64_t step = 0;  // the latest step done
  bool finished = false;
  int stop_signal = 0;          // the signal that ended it early, or 0
  std::string early_stop = {};  // why train.early_stop ended it before train.steps, or ""
};

struct TrainingParts;

class Training {
 public:
  // Collective. Reads manifests, builds the model, takes the checkpoint folder's lock and resumes.
  Training(const RunConfig& config, const TrainingHost& host);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  TrainingOutcome run();

 private:
  std::unique_ptr<TrainingParts> parts_;
};

}  // namespace trireme
