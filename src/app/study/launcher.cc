#include "src/app/study/launcher.h"

#include <filesystem>

namespace trireme {
namespace {

// mpirun and srun kill ranks that ignore SIGTERM within some seconds; busy nodes need longer.
constexpr std::chrono::seconds kGrace{10};

}  // namespace

CommandResult run_launcher(std::vector<std::string> argv, std::chrono::duration<double> limit) {
  CommandEnd end{.grace = kGrace};
  if (std::filesystem::path(argv.front()).filename() == "srun") {
    // At SIGTERM and SIGINT, srun kills its tasks, which cannot remove their files then. It passes
    // SIGUSR1 on.
    end.signals = {SIGUSR1, SIGTERM};
    // Otherwise srun lets the ranks wait for one that has died.
    argv.insert(argv.begin(), {"env", "SLURM_KILL_BAD_EXIT=1"});
  }
  argv.insert(argv.begin(), {"setpriv", "--pdeathsig", "TERM"});
  return run_command(std::move(argv), limit, end);
}

}  // namespace trireme
