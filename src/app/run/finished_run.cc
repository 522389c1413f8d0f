#include "src/app/run/finished_run.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/train/run/fingerprint.h"
#include "src/train/saving/resume_check.h"

namespace trireme {

void check_same_as_finished(const RunConfig& config, const RunDirectory& run) {
  const std::int64_t done = run.done_step().value_or(config.train.steps);
  const StepFolder step = inspect_step(config.checkpoint_dir() / step_folder_name(done));
  if (!step.manifest) {
    return;  // it is damaged, which `trireme ckpt verify` says
  }
  const nlohmann::json& saved = *step.manifest->meta.config;
  const auto saved_text = [&saved](const char* field) {
    const auto at = saved.find(field);
    return at != saved.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  RunConfig same = config;
  same.distill.manifest_sha256 = saved_text("distill.teacher");
  same.checkpoint.allow_change.emplace_back("optimizer.schedule.steps");
  try {
    check_same_run(
        *step.manifest, same,
        config_fingerprint(same, saved_text("data.digest"), saved_text("data.tokenizer")));
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{} is finished, and {}", config.run_dir.string(), error.what()));
  }
}

void print_finished(const RunConfig& config, const RunDirectory& run) {
  const std::int64_t step = run.done_step().value_or(config.train.steps);
  const std::string state =
      step > config.train.steps
          ? fmt::format("finished at step {} (train.steps is {})", step, config.train.steps)
          : fmt::format("finished, step {} of {}", step, config.train.steps);
  const std::int64_t longer = 2 * std::max(step, config.train.steps);
  fmt::print(
      "{}: {}.\nTo train longer, for example twice as long with the "
      "learning rate's schedule stretched, run the same command with\n  train.steps={} "
      "optimizer.schedule.steps={} checkpoint.allow_change=optimizer.schedule.steps\n",
      printable(config.run_dir.string()), state, longer, longer);
}

}  // namespace trireme
