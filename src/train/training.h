// Training: a run from its configuration to its last step: builds all parts, resumes, loops, saves,
// and stops when asked. Everything that is collective happens here, in one order on every rank.
#pragma once

#include <memory>

#include "mpi/mpi_session.h"
#include "src/base/log.h"
#include "src/train/run_config.h"
#include "src/train/run_directory.h"
#include "src/train/stop_flag.h"

namespace trireme {

struct TrainingOutcome {
  std::int64_t step = 0;  // the last one done
  bool finished = false;
  int stop_signal = 0;  // what ended it early
};

// What the training borrows for its life.
struct TrainingHost {
  MpiSession& session;
  Log& log;
  const StopFlag& stop;
  RunStatus& status;
};

class Training {
 public:
  // Reads manifests, builds the model, takes the checkpoint folder's lock and resumes. Collective.
  Training(const LoadedConfig& config, const TrainingHost& host);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  TrainingOutcome run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Compute threads of this rank, by the configuration or its share of the cores.
int threads_of(const RunConfig& config, const MpiSession& session);

}  // namespace trireme
