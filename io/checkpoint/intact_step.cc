#include "io/checkpoint/intact_step.h"

#include "io/checkpoint/steps_to_try.h"
#include "io/checkpoint/verify.h"
#include "mpi/agreement.h"
#include "mpi/self_communicator.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns the first fault in the step's files, or "".
std::string damage_of(const fs::path& path, const KeyOptions& keys) {
  StepFolder step = inspect_step(path);
  if (!step.manifest) {
    return step.problem;
  }
  try {
    unlock(*step.manifest, path, keys);
  } catch (const DataError& error) {
    return error.what();
  }
  const std::vector<std::string> faults = verify_step(path, *step.manifest);
  return faults.empty() ? "" : faults.front();
}

}  // namespace

std::vector<std::string> use_intact_step(const fs::path& checkpoint, Communicator& world,
                                         const KeyOptions& keys,
                                         const std::function<void(const fs::path& step)>& work) {
  std::vector<std::string> skipped;
  const std::vector<fs::path> steps = steps_to_try(checkpoint, world, skipped);
  for (const fs::path& step : steps) {
    try {
      work(step);
      return world.rank() == 0 ? shortened(std::move(skipped), checkpoint)
                               : std::vector<std::string>();
    } catch (const DataError&) {
      const std::string damage = run_on_root(world, [&] { return damage_of(step, keys); });
      if (damage.empty() || steps.size() == 1) {
        throw;
      }
      skipped.push_back(damage);
    }
  }
  throw no_valid_checkpoint_in(checkpoint, skipped);
}

std::vector<std::string> use_intact_step(const fs::path& checkpoint, const KeyOptions& keys,
                                         const std::function<void(const fs::path& step)>& work) {
  SelfCommunicator self;
  return use_intact_step(checkpoint, self, keys, work);
}

StepFolder find_intact_step(const fs::path& checkpoint, std::vector<std::string>& skipped) {
  std::vector<std::string> problems;
  std::vector<StepFolder> steps = find_steps(checkpoint, problems);
  for (StepFolder& step : steps) {
    const std::vector<std::string> faults = verify_step(step.path, *step.manifest);
    if (faults.empty()) {
      skipped = shortened(std::move(problems), checkpoint);
      return std::move(step);
    }
    problems.push_back(faults.front());
  }
  if (problems.size() == 1) {
    throw DataError(fmt::format("{}\n{}", problems.front(), advice_on_damage(steps.front().path)));
  }
  throw no_valid_checkpoint_in(checkpoint, problems);
}

}  // namespace trireme
