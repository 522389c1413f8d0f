#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/keep_steps.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "src/base/fault.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

bool has_only(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

// Returns an unused name for `path` as trash.
fs::path free_trash_name(const fs::path& path, std::int64_t generation) {
  const std::int64_t step = parse_step_folder_name(path.filename().string()).value_or(0);
  TransientName name{TransientName::Kind::trash, step, generation};
  while (fs::exists(fs::symlink_status(path.parent_path() / name.to_string()))) {
    ++name.generation;
  }
  return path.parent_path() / name.to_string();
}

bool is_damaged(const StepFolder& step, const Retention& retention) {
  const StepIdentity identity{step.step, step.manifest->generation};
  const std::vector<StepIdentity>& damaged = retention.damaged;
  return std::find(damaged.begin(), damaged.end(), identity) != damaged.end();
}

// Returns the steps that the manifest of the newest whole step asks to keep. Ignores entries that
// are not integers.
std::set<std::int64_t> steps_to_keep(const std::vector<StepFolder>& steps) {
  std::set<std::int64_t> kept;
  const auto newest = std::find_if(
      steps.begin(), steps.end(), [](const StepFolder& step) { return step.manifest.has_value(); });
  if (newest == steps.end() || !newest->manifest->meta.extra->contains(kKeepStepsField)) {
    return kept;
  }
  for (const nlohmann::json& step : (*newest->manifest->meta.extra)[kKeepStepsField]) {
    if (step.is_number_integer()) {
      kept.insert(step.get<std::int64_t>());
    }
  }
  return kept;
}

}  // namespace

bool is_draft(const fs::path& path) {
  const std::string name = path.filename().string();
  std::string_view rest = name;
  const auto skip = [&rest](std::string_view prefix) {
    const bool found = rest.starts_with(prefix);
    rest.remove_prefix(found ? prefix.size() : 0);
    return found;
  };
  bool matches = false;
  if (skip(kLockName)) {
    matches =
        (skip(".stale-") || skip(".")) && rest.size() == 16 && has_only(rest, "0123456789abcdef");
  } else if (skip(kLatestName) || skip(kGenerationName)) {
    matches = skip(".tmp-") && has_only(rest, "0123456789");
  }
  return matches && fs::is_regular_file(fs::symlink_status(path));
}

std::vector<fs::path> plan_retention(const std::vector<StepFolder>& steps,
                                     const Retention& retention) {
  if (retention.keep < 2) {
    throw ConfigError(
        fmt::format("checkpoint.keep (or --keep) is {}: it must be at least 2, so that a damaged "
                    "checkpoint is never the only one",
                    retention.keep));
  }
  const std::set<std::int64_t> wanted = steps_to_keep(steps);
  std::vector<fs::path> doomed;
  std::int64_t kept = 0;
  bool is_newest = true;
  for (const StepFolder& step : steps) {
    if (!step.manifest || is_damaged(step, retention)) {
      continue;
    }
    const bool counts = retention.counts_every == 0 || step.step % retention.counts_every == 0;
    const bool stays = (counts && kept < retention.keep) || is_newest;
    is_newest = is_newest && !step.manifest->read_back;
    if (stays) {
      kept += counts && step.manifest->read_back ? 1 : 0;
      continue;
    }
    const bool is_milestone = retention.keep_every > 0 && step.step % retention.keep_every == 0;
    if (!is_milestone && !step.pinned && !wanted.contains(step.step) &&
        !fs::is_symlink(fs::symlink_status(step.path))) {
      doomed.push_back(step.path);
    }
  }
  return doomed;
}

fs::path take_step_away(const fs::path& path, std::int64_t generation) {
  fault("ckpt.gc_before");
  const fs::path trash = free_trash_name(path, generation);
  rename_durably(path, trash);
  fault("ckpt.gc_renamed");
  return trash;
}

void delete_step(const fs::path& path, std::int64_t generation) {
  remove_trash(take_step_away(path, generation));
}

void remove_trash(const fs::path& trash) {
  remove_tree(trash / kManifestName);
  fault("ckpt.gc_mid");
  remove_tree(trash);
  fault("ckpt.gc_after");
}

void clean_remains(const fs::path& folder, std::int64_t generation) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  for (const fs::path& path : paths) {
    const auto name = parse_transient_name(path.filename().string());
    if (is_draft(path)) {
      remove_tree(path);
    }
    if (!name || name->generation >= generation) {
      continue;
    }
    const fs::path place = folder / step_folder_name(name->step);
    if (name->kind == TransientName::Kind::replaced && !fs::exists(fs::symlink_status(place))) {
      rename_durably(path, place);
    } else {
      remove_tree(path);
    }
  }
}

}  // namespace trireme
