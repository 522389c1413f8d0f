// RunPrediction compares a run with what the planner predicts for its layout on the cluster of
// plan.cluster: part by part, at the end, in the log and in <run>/prediction.json. Owned by the
// training loop, whose thread uses it. Calls are collective unless they say otherwise.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/base/log.h"
#include "src/plan/cluster_file.h"
#include "src/train/prediction/step_timings.h"
#include "src/train/run/layout.h"

namespace trireme {

// PeakMemory is that of the rank that has most: of its device if it computes on one, else of the
// host. Bytes.
struct PeakMemory {
  std::int64_t predicted = 0;
  std::int64_t measured = 0;
};

class RunPrediction {
 public:
  // Is called on every rank with what the run has measured; may be empty, on all ranks alike.
  using Observe = std::function<void(const MeasuredStep& measured)>;

  // All arguments outlive it. device: where this rank computes. Throws ConfigError on all ranks if
  // plan.cluster is no cluster file.
  RunPrediction(const RunConfig& config, const Layout& layout, const std::vector<RankPlace>& places,
                Communicator& world, Device device);

  // Not collective.
  StepTimings& timings() { return timings_; }
  // Logs and writes the comparison if there is a plan.cluster.
  void finish(const PeakMemory& memory, const Observe& observe, Log& log);

 private:
  void report(const MeasuredStep& step, const PeakMemory& memory, Log& log) const;

  const RunConfig& config_;
  const Layout& layout_;
  const std::vector<RankPlace>& places_;
  Communicator& world_;
  Device device_;
  std::optional<Cluster> cluster_;  // on rank 0
  StepTimings timings_;
};

// Returns what makes a prediction on the cluster doubtful for ranks that are placed like this:
// sentences for people.
std::vector<std::string> doubts_about(const Cluster& cluster, int ranks, int ranks_per_host,
                                      const std::string& device_kind);

}  // namespace trireme
