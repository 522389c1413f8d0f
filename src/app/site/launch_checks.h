// Makes the checks of `trireme doctor` that need the run's configuration and its ranks. Collective:
// all ranks make the same calls, and each returns its own findings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "slurm/doctor/comparisons.h"
#include "slurm/doctor/finding.h"
#include "src/train/memory/memory_plan.h"
#include "src/train/run/rank_device.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Describes the ranks of the planned launch, if they differ from those of this one.
struct PlannedRanks {
  int world = 0;  // 0 if they are the same
  int per_host = 0;
};

class LaunchChecks {
 public:
  LaunchChecks(const RunConfig& config, Communicator& world, const std::vector<RankPlace>& places)
      : config_(config), world_(world), places_(places) {}

  // Checks limits, folders and interfaces of this rank's host, the audit log and its key, the
  // tuning table and the training data, on one rank per host.
  std::vector<Finding> host(const PlannedRanks& planned) const;
  // Checks, on one rank per host, what a start looks at only when it knows its layout: checkpoints,
  // the validation set, and at last the space for checkpoints.
  std::vector<Finding> after_layout() const;
  // Gives the ranks their devices as a start does, and checks the GPUs of each host and what
  // surrounds them. `summaries` receives a line on the GPUs of this host, on one rank per host.
  std::vector<Finding> devices(const PlannedRanks& planned, std::vector<std::string>& summaries);
  // Checks the threads of this rank and, if devices() has given it a device, its kernels.
  std::vector<Finding> numbers() const;
  // Returns the facts of this rank, including the comparison of its clock and folders with rank
  // 0's.
  RankFacts facts(const std::string& mpi_version) const;
  // Checks whether the layout fits the ranks, and whether memory and /dev/shm suffice for it, on
  // the devices that devices() has given out.
  std::vector<Finding> layout(const PlannedRanks& planned) const;

 private:
  const RankPlace& own() const { return places_[static_cast<std::size_t>(world_.rank())]; }
  // Returns nothing if the ranks cannot have the devices that they need, which devices() reports.
  std::optional<Device> own_device() const;
  std::string own_kernels() const;
  // Joins the texts of the ranks of this host; texts: one for each rank.
  std::string of_this_host(const std::vector<std::string>& texts) const;
  int own_threads() const;
  bool sees_what_root_writes(const std::filesystem::path& folder) const;
  std::int64_t memory_checkpoint_bytes(const std::vector<MemoryPlan>& ranks) const;

  const RunConfig& config_;
  Communicator& world_;
  const std::vector<RankPlace>& places_;
  std::vector<RankDevice> devices_;  // empty unless devices() has given them out
};

}  // namespace trireme
