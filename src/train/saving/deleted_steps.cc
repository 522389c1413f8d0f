#include "src/train/saving/deleted_steps.h"

#include <utility>

#include <nlohmann/json.hpp>

namespace trireme {
namespace fs = std::filesystem;

void DeletedSteps::add(const StepFolder& step) {
  const std::lock_guard lock(mutex_);
  steps_.push_back({step.step, step.path, step.manifest_sha256});
}

void DeletedSteps::record(const Audit& audit) {
  std::vector<Step> steps;
  {
    const std::lock_guard lock(mutex_);
    steps = std::exchange(steps_, {});
  }
  for (const Step& step : steps) {
    if (audit) {
      audit("checkpoint.deleted",
            {{"step", step.number},
             {"folder", fs::absolute(step.folder).lexically_normal().string()},
             {"manifest_sha256", step.manifest_sha256}});
    }
  }
}

}  // namespace trireme
