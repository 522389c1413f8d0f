#include "src/app/study/launcher.h"

namespace trireme {
namespace {

// mpirun and srun kill ranks that ignore SIGTERM within some seconds; busy nodes need longer.
constexpr std::chrono::seconds kGrace{10};

}  // namespace

CommandResult run_launcher(std::vector<std::string> argv, std::chrono::duration<double> limit) {
  argv.insert(argv.begin(), {"setpriv", "--pdeathsig", "TERM"});
  return run_command(std::move(argv), limit, kGrace);
}

}  // namespace trireme
