#include "src/interchange/export.h"

#include "mpi/agreement.h"
#include "src/base/error.h"

namespace trireme {

StepFolder open_step(const ExportOptions& options, Communicator& world, StepKeys& keys) {
  const std::string path = run_on_root(world, [&] {
    std::vector<std::string> skipped;
    return find_step(options.checkpoint, skipped).path.string();
  });
  std::vector<std::string> none;
  StepFolder step = find_step(path, none);
  if (const std::string fault = keys.unlock(*step.manifest, step.path); !fault.empty()) {
    throw DataError(fault);
  }
  if (!step.manifest->data_key.empty() && !options.plain) {
    throw PolicyError(fmt::format(
        "{} is encrypted, but exported files are not: give --plain if they may be written",
        step.path.string()));
  }
  return step;
}

}  // namespace trireme
