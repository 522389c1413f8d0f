#include <cerrno>
#include <system_error>

#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Drafts that a crash left beside the small files.
bool is_draft(const std::string& name) {
  return name.starts_with(fmt::format("{}.", kLockName)) ||
         name.starts_with(fmt::format("{}.", kLatestName)) ||
         name.starts_with(fmt::format("{}.", kGenerationName));
}

// A name for `path`'s content that nothing has yet.
fs::path free_trash_name(const fs::path& path, std::int64_t generation) {
  const std::int64_t step = parse_step_folder_name(path.filename().string()).value_or(0);
  TransientName name{TransientName::Kind::trash, step, generation};
  while (fs::exists(fs::symlink_status(path.parent_path() / name.to_string()))) {
    ++name.generation;
  }
  return path.parent_path() / name.to_string();
}

}  // namespace

std::vector<fs::path> plan_retention(const std::vector<StepFolder>& steps,
                                     const Retention& retention) {
  if (retention.keep < 2) {
    throw ConfigError(
        fmt::format("keep is {}: at least 2 checkpoints are kept, so that one bad one "
                    "is never the only one",
                    retention.keep));
  }
  std::vector<fs::path> doomed;
  std::int64_t kept = 0;
  bool is_newest = true;
  for (const StepFolder& step : steps) {
    if (!step.manifest) {
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
    if (!is_milestone && !step.pinned && !fs::is_symlink(fs::symlink_status(step.path))) {
      doomed.push_back(step.path);
    }
  }
  return doomed;
}

fs::path take_step_away(const fs::path& path, std::int64_t generation, const Observer& observer) {
  tell(observer, "gc_before");
  const fs::path trash = free_trash_name(path, generation);
  rename_durably(path, trash);
  tell(observer, "gc_renamed");
  return trash;
}

void delete_step(const fs::path& path, std::int64_t generation, const Observer& observer) {
  remove_trash(take_step_away(path, generation, observer), observer);
}

void remove_trash(const fs::path& trash, const Observer& observer) {
  remove_tree(trash / kManifestName);
  tell(observer, "gc_mid");
  remove_tree(trash);
  tell(observer, "gc_after");
}

void clean_remains(const fs::path& folder, std::int64_t generation) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    paths.push_back(entry.path());
  }
  for (const fs::path& path : paths) {
    const auto name = parse_transient_name(path.filename().string());
    if (is_draft(path.filename().string())) {
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
