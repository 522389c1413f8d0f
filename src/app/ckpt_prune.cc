#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/run_lock.h"
#include "src/app/ckpt_subcommands.h"
#include "src/app/standard_output.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The checkpoints in a folder, and those of them that the retention rules delete.
struct PrunePlan {
  std::vector<StepFolder> steps;
  std::vector<fs::path> doomed;

  explicit PrunePlan(const CkptOptions& options)
      : steps(all_steps(options)), doomed(plan_retention(steps, options.retention)) {}
};

// The lock that a run holds while it writes here: a run that loads or saves now keeps its steps.
RunLock take_run_lock(const CkptOptions& options) {
  try {
    return RunLock(clean_path(options), false);
  } catch (const PolicyError& e) {
    throw PolicyError(fmt::format("nothing is deleted: {}", e.what()));
  }
}

void delete_steps(const PrunePlan& plan, const RunLock& lock, bool quiet) {
  for (const fs::path& path : plan.doomed) {
    lock.check_still_mine();
    if (!quiet) {
      fmt::print("deleting {}\n", printable(path.string()));
    }
    delete_step(path, lock.generation(), {});
  }
}

ordered_json to_json(const PrunePlan& plan, bool dry_run) {
  ordered_json deleted = ordered_json::array();
  for (const StepFolder& step : plan.steps) {
    if (std::find(plan.doomed.begin(), plan.doomed.end(), step.path) != plan.doomed.end()) {
      deleted.push_back(
          {{"path", step.path.string()}, {"step", step.step}, {"bytes", step.manifest->bytes()}});
    }
  }
  return {{"schema", 1},
          {"dry_run", dry_run},
          {"pruned", deleted},
          {"kept", plan.steps.size() - plan.doomed.size()}};
}

void print_plan(const PrunePlan& plan) {
  for (const fs::path& path : plan.doomed) {
    fmt::print("would delete {}\n", printable(path.string()));
  }
}

void prune(const CkptOptions& options) {
  PrunePlan plan(options);
  if (is_step_folder(clean_path(options))) {
    throw ConfigError(fmt::format(
        "{} is a single checkpoint: name the folder that holds the checkpoints (to delete a "
        "single checkpoint, remove its folder)",
        options.folder));
  }
  if (!options.dry_run) {
    const RunLock lock = take_run_lock(options);
    plan = PrunePlan(options);  // a run may have saved or deleted before the lock was taken
    delete_steps(plan, lock, options.json);
  } else if (!options.json) {
    print_plan(plan);
  }
  if (options.json) {
    print_json(to_json(plan, options.dry_run));
  } else if (plan.doomed.empty()) {
    fmt::print("nothing to prune: {} to keep\n", counted(plan.steps.size(), "checkpoint"));
  }
}

}  // namespace

void add_ckpt_prune(CommandLine& ckpt, const std::shared_ptr<CkptOptions>& options) {
  CommandLine& command = add_ckpt_subcommand(
      ckpt, "prune",
      "Delete old checkpoints, except pinned and damaged ones. Exits with 77 and deletes nothing "
      "while a run writes to the folder",
      "trireme ckpt prune runs/demo/run/checkpoints --keep 2 --dry-run", options);
  command.add_option("--keep", options->retention.keep, "Keep the N newest checkpoints, at least 2")
      .show_default();
  command
      .add_option("--keep-every", options->retention.keep_every,
                  "Also keep the steps divisible by N; 0 = none")
      .show_default();
  command.add_flag("--dry-run", options->dry_run, "Only print what would be deleted");
  command.add_flag("--json", options->json, "Print JSON");
  command.callback([options] { prune(*options); });
}

}  // namespace trireme
