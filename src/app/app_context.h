// AppContext: what the subcommands share: MPI, started when first asked for, and what is known for
// the exit reason. main() owns it; it outlives every subcommand.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "mpi/session/mpi_session.h"
#include "src/base/progress_page.h"
#include "src/train/run/run_directory.h"

namespace trireme {

class AppContext {
 public:
  // Starts MPI at the first call, with the faults that TRIREME_FAULTS plans.
  MpiSession& session();
  bool has_session() const { return session_ != nullptr; }

  int exit_code = 0;
  // Where a failure is recorded, once known.
  std::optional<RunDirectory> run;
  RunStatus status;
  // Of a rank that a launcher watches; else null.
  std::unique_ptr<ProgressPage> progress;

 private:
  std::unique_ptr<MpiSession> session_;
};

// Measures the threads of this process as kernels will use them, with warnings on stderr.
int compute_threads(int wanted);

// Prints what went wrong, with rank and host, records it in the run directory, and ends the process
// or the whole job. Called where nothing else can catch. at_fault: the rank of a fault that is
// another's than the one that tells it.
[[noreturn]] void end_with(AppContext& context, ExitCode code, std::string_view kind,
                           const std::string& what, std::optional<int> at_fault = std::nullopt);

}  // namespace trireme
