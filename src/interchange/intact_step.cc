#include "src/interchange/intact_step.h"

#include "io/checkpoint/store.h"
#include "io/checkpoint/verify.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/train/saving/steps_to_try.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Collective. Returns the first fault in the step's files, or "".
std::string damage_of(const fs::path& path, Communicator& world) {
  return run_on_root(world, [&]() -> std::string {
    const StepFolder step = inspect_step(path);
    if (!step.manifest) {
      return step.problem;
    }
    const std::vector<std::string> faults = verify_step(path, *step.manifest);
    return faults.empty() ? "" : faults.front();
  });
}

}  // namespace

std::vector<std::string> use_intact_step(const fs::path& checkpoint, Communicator& world,
                                         const std::function<void(const fs::path& step)>& work) {
  std::vector<std::string> skipped;
  const std::vector<fs::path> steps = steps_to_try(checkpoint, world, skipped);
  for (const fs::path& step : steps) {
    try {
      work(step);
      return world.rank() == 0 ? shortened(std::move(skipped), checkpoint)
                               : std::vector<std::string>();
    } catch (const DataError&) {
      const std::string damage = damage_of(step, world);
      if (damage.empty() || steps.size() == 1) {
        throw;
      }
      skipped.push_back(damage);
    }
  }
  throw no_valid_checkpoint_in(checkpoint, skipped);
}

}  // namespace trireme
