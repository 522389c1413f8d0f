// The checks of `trireme doctor` that need the run's configuration and its ranks. Collective: every
// rank makes the same calls; each returns what this rank has found.
#pragma once

#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "slurm/doctor/comparisons.h"
#include "slurm/doctor/finding.h"
#include "src/train/memory/memory_plan.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Ranks that the launch will have, where it is not this one.
struct PlannedRanks {
  int world = 0;  // 0: as now
  int a_host = 0;
};

class LaunchChecks {
 public:
  LaunchChecks(const RunConfig& config, Communicator& world, const std::vector<RankPlace>& places)
      : config_(config), world_(world), places_(places) {}

  // Limits, folders and datasets of this rank's host; of one rank a host.
  std::vector<Finding> host(const PlannedRanks& planned) const;
  // The threads of this rank, and the self-check of its kernels.
  std::vector<Finding> numbers() const;
  // What this rank is; clocks and the run's folder are compared on the way.
  RankFacts facts(const std::string& mpi_version) const;
  // Degrees against ranks, and what they take of memory and of /dev/shm.
  std::vector<Finding> layout(const PlannedRanks& planned) const;

 private:
  const RankPlace& own() const { return places_[static_cast<std::size_t>(world_.rank())]; }
  int own_threads() const;
  bool sees_what_root_writes(const std::filesystem::path& folder) const;
  std::int64_t memory_checkpoint_bytes(const std::vector<MemoryPlan>& ranks) const;

  const RunConfig& config_;
  Communicator& world_;
  const std::vector<RankPlace>& places_;
};

}  // namespace trireme
