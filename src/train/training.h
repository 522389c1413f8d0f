// Training: a run from its configuration to its last step: builds all parts (training_parts.h),
// resumes, loops, saves, and stops when asked. Everything that is collective happens there, in one
// order on every rank. One a process, used by the main thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/memory/node_memory.h"
#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "mpi/watch/flight_recorder.h"
#include "src/base/log.h"
#include "src/base/progress_page.h"
#include "src/train/run/run_config.h"
#include "src/train/run/run_directory.h"
#include "src/train/stop_flag.h"
#include "src/train/time_limit.h"

namespace trireme {

struct TrainingOutcome {
  std::int64_t step = 0;  // the last one done
  bool finished = false;
  int stop_signal = 0;          // what ended it early
  std::string early_stop = {};  // why train.early_stop ended it before train.steps; else empty
};

// What the training borrows for its life.
struct TrainingHost {
  Communicator& world;                   // all ranks, for messages of the host
  Communicator& data;                    // all ranks, for tensors
  const std::vector<RankPlace>& places;  // by rank
  FlightRecorder& recorder;              // this rank's
  Log& log;
  const StopFlag& stop;
  RunStatus& status;
  NodeMemory node = {};              // that outlives this rank; none: no checkpoints in memory
  double mtbf_hours = 0;             // between failures, as the launcher has seen; 0: unknown
  TimeLimit limit = {};              // rank 0's
  ProgressPage* progress = nullptr;  // for who watches from outside; null: nobody does
};

struct TrainingParts;

class Training {
 public:
  // Reads manifests, builds the model, takes the checkpoint folder's lock and resumes. Collective.
  Training(const RunConfig& config, const TrainingHost& host);
  ~Training();
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  TrainingOutcome run();

 private:
  std::unique_ptr<TrainingParts> parts_;
};

}  // namespace trireme
