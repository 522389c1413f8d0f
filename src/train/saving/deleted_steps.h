// DeletedSteps takes note of the old steps that retention deletes, on the thread that deletes them,
// and records them in the site's audit log on the main thread.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/store.h"

namespace trireme {

class DeletedSteps {
 public:
  using Audit = std::function<void(std::string_view event, const nlohmann::ordered_json& details)>;

  // Called from any thread.
  void add(const StepFolder& step);
  // Records checkpoint.deleted for each step since the last call, unless `audit` is empty.
  void record(const Audit& audit);

 private:
  struct Step {
    std::int64_t number = 0;
    std::filesystem::path folder;
    std::string manifest_sha256;
  };

  std::mutex mutex_;
  std::vector<Step> steps_;
};

}  // namespace trireme
