// Training executes a run from its configuration to its last step: it builds all parts
// (training_parts.h), resumes, loops, saves, and stops when asked. All collective calls of a run
// happen here, in the same order on every rank. There is one per process, used by the main thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/memory/node_memory.h"
#include "mpi/communicator.h"
#include "mpi/links/link_book.h"
#include "mpi/topology.h"
#include "mpi/watch/flight_recorder.h"
#include "src/base/log.h"
#include "src/base/progress_page.h"
#include "src/train/run/rank_device.h"
#include "src/train/run/run_config.h"
#include "src/train/run/run_directory.h"
#include "src/train/stop_flag.h"
#include "src/train/time_limit.h"

namespace trireme {

struct TrainingOutcome {
  std::int64_t step = 0;  // the latest step done
  bool finished = false;
  int stop_signal = 0;          // the signal that ended it early, or 0
  std::string early_stop = {};  // why train.early_stop ended it before train.steps, or ""
};

// TrainingHost holds what Training borrows; all of it must outlive Training.
struct TrainingHost {
  Communicator& world;                               // all ranks, for small messages in host memory
  Communicator& data;                                // all ranks, for tensors
  Device device = {};                                // where this rank computes
  const std::vector<RankDevice>* devices = nullptr;  // of all ranks; null if all are the CPU
  const std::vector<RankPlace>& places;              // by rank
  FlightRecorder& recorder;                          // of this rank
  Log& log;
  const StopFlag& stop;
  RunStatus& status;
  NodeMemory node = {};   // outlives this rank; if empty, no checkpoints in memory
  double mtbf_hours = 0;  // time between failures that the launcher observed; 0 means unknown
  TimeLimit limit = {};   // used on rank 0
  ProgressPage* progress = nullptr;  // shows progress to the launcher; null without one
  const LinkBook* links = nullptr;   // how NCCL connects this rank; null if it does not
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
