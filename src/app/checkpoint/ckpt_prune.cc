#include <algorithm>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "src/app/access/folder_access.h"
#include "src/app/checkpoint/ckpt_subcommands.h"
#include "src/app/command/standard_output.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Only this many steps are listed and the others counted, because a line of the audit log has a
// limited length.
constexpr std::size_t kMostRecorded = 1000;

// Part of the name of a step that is being deleted. Every run that starts removes such remains.
constexpr std::int64_t kNoGeneration = 0;

// Lists the checkpoints in a folder, and those that the retention rules delete.
struct PrunePlan {
  std::vector<StepFolder> steps;
  std::vector<fs::path> doomed;

  explicit PrunePlan(const CkptOptions& options)
      : steps(all_steps(options)), doomed(plan_retention(steps, options.retention)) {}
};

// Refuses to delete while a run loads or saves in this folder. It only looks at the run's lock: to
// take it would need space on a disk that may be full, and would refuse a run that starts now.
void refuse_beside_run(const fs::path& folder, bool has_deleted) {
  if (const std::optional<LockHolder> owner = lock_holder(folder)) {
    const std::string way_out = owner->is_alive
                                    ? ""
                                    : fmt::format("; if you are sure that it is dead, remove {}",
                                                  (folder / kLockName).string());
    throw PolicyError(fmt::format("{} deleted, because a run writes to {}: {}. Wait for its end{}",
                                  has_deleted ? "nothing more is" : "nothing was", folder.string(),
                                  owner->text, way_out));
  }
}

ordered_json to_json(const PrunePlan& plan, const std::vector<fs::path>& pruned, bool dry_run) {
  ordered_json deleted = ordered_json::array();
  for (const StepFolder& step : plan.steps) {
    if (std::find(pruned.begin(), pruned.end(), step.path) != pruned.end()) {
      deleted.push_back(
          {{"path", step.path.string()}, {"step", step.step}, {"bytes", step.manifest->bytes()}});
    }
  }
  return {{"schema", 1},
          {"dry_run", dry_run},
          {"pruned", deleted},
          {"kept", plan.steps.size() - pruned.size()}};
}

// Adds a deleted step to what the end of this command records.
void record(const PrunePlan& plan, const fs::path& path, std::size_t number, nlohmann::json& end) {
  const auto step = std::find_if(plan.steps.begin(), plan.steps.end(),
                                 [&](const StepFolder& each) { return each.path == path; });
  end["folder"] = fs::absolute(path).lexically_normal().parent_path().string();
  end["deleted"] = number;
  if (number <= kMostRecorded) {
    end["steps"].push_back({{"step", step->step}, {"manifest_sha256", step->manifest_sha256}});
  }
}

// Appends each deleted step to `deleted`, so that the caller can report them after an error.
void delete_steps(const PrunePlan& plan, const CkptOptions& options, AuditTrail& audit,
                  std::vector<fs::path>& deleted) {
  refuse_beside_run(clean_path(options), false);
  for (const fs::path& path : plan.doomed) {
    refuse_beside_run(clean_path(options), !deleted.empty());
    delete_step(path, kNoGeneration);
    deleted.push_back(path);
    record(plan, path, deleted.size(), *audit.end_details());
    if (!options.json) {
      fmt::print("deleted {}\n", printable(path.string()));
    }
  }
}

void print_plan(const PrunePlan& plan) {
  for (const fs::path& path : plan.doomed) {
    fmt::print("would delete {}\n", printable(path.string()));
  }
}

void prune(const CkptOptions& options, AuditTrail& audit, const Access& access) {
  const PrunePlan plan(options);
  if (is_step_folder(clean_path(options))) {
    throw ConfigError(fmt::format(
        "{} is a single checkpoint: name the folder that holds the checkpoints (to delete a "
        "single checkpoint, remove its folder)",
        options.folder));
  }
  if (!options.dry_run) {
    check_folder_access(access, Deed::write, options.folder);
  }
  if (options.dry_run) {
    options.json ? print_json(to_json(plan, plan.doomed, true)) : print_plan(plan);
  } else {
    std::vector<fs::path> deleted;
    try {
      delete_steps(plan, options, audit, deleted);
    } catch (const Error&) {
      if (options.json && !deleted.empty()) {
        print_json(to_json(plan, deleted, false));
      }
      throw;
    }
    if (options.json) {
      print_json(to_json(plan, deleted, false));
    }
  }
  if (!options.json && plan.doomed.empty()) {
    fmt::print("nothing to prune: {} to keep\n", counted(plan.steps.size(), "checkpoint"));
  }
}

}  // namespace

void add_ckpt_prune(CommandLine& ckpt, const std::shared_ptr<CkptOptions>& options,
                    AuditTrail& audit, const AccessSource& access) {
  CommandLine& command = add_ckpt_subcommand(
      ckpt, "prune",
      "Delete old checkpoints, except pinned and damaged ones. Exits with 77 and deletes nothing "
      "while a run writes to the folder",
      "trireme ckpt prune runs/demo/run/checkpoints --keep 2 --dry-run", options,
      "The folder that holds the checkpoints");
  command.add_option("--keep", options->retention.keep,
                     "Keep the N newest checkpoints, at least 2");
  command.add_option("--keep-every", options->retention.keep_every,
                     "Also keep the steps divisible by N; 0 = none");
  command.add_flag("--dry-run", options->dry_run, "Only print what would be deleted");
  command.add_flag("--json", options->json, "Print JSON");
  command.callback([options, access, &audit] { prune(*options, audit, access()); });
}

}  // namespace trireme
