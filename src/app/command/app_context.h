// AppContext is what the subcommands share: MPI, started on first use, and the facts that the exit
// reason records. main() owns it, and it outlives every subcommand.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mpi/session/mpi_session.h"
#include "src/app/command/audit_trail.h"
#include "src/base/fault_site.h"
#include "src/base/progress_page.h"
#include "src/device/nvml/gpu_monitor.h"
#include "src/policy/access.h"
#include "src/train/run/rank_device.h"
#include "src/train/run/run_directory.h"

namespace trireme {

class AppContext {
 public:
  // Starts MPI in the first call, with the faults that TRIREME_FAULTS plans.
  MpiSession& session();
  // Returns what this process may do by the policy of the site, which the first call reads, and
  // records its decisions. Throws what Access::of_this_host() throws.
  const Access& access();
  bool has_session() const { return session_ != nullptr; }

  // The fault points that TRIREME_FAULTS may name.
  std::span<const FaultSite> fault_sites;
  int exit_code = 0;
  std::vector<std::string> arguments;  // of the command line
  // Says where a failure is recorded, once that is known.
  std::optional<RunDirectory> run;
  RunStatus status;
  // Points to the progress page of a rank that `trireme launch` watches; otherwise null.
  std::unique_ptr<ProgressPage> progress;
  // The devices of all ranks, in rank order; empty until they are known.
  std::vector<RankDevice> devices;
  // Collects the critical errors of this rank's GPU; null without one, or without a driver.
  std::unique_ptr<GpuMonitor> gpu;
  AuditTrail audit;  // of this process; records nothing unless a site has a log

 private:
  void record_decision(std::string_view event, const nlohmann::ordered_json& details);

  std::unique_ptr<MpiSession> session_;
  std::optional<Access> access_;
};

// Measures how many threads kernels of this process will use. Prints warnings to stderr.
int compute_threads(int wanted);

// Keeps the ranks' devices, and begins to watch that of this rank.
void note_devices(AppContext& context, std::vector<RankDevice> devices);

// Prints what went wrong, with rank and host, records it in the run directory, and ends the process
// or the whole job. For errors that no caller can handle. at_fault: the rank that caused the fault
// if it is not the one that reports it. If the driver reports a fault of this rank's GPU, the code
// becomes that of a device fault, and the message says so.
[[noreturn]] void end_with(AppContext& context, ExitCode code, std::string_view kind,
                           const std::string& what, std::optional<int> at_fault = std::nullopt);

}  // namespace trireme
