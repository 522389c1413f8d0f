#include "src/app/evidence/erase_plan.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <system_error>

#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "io/checkpoint/store.h"
#include "src/app/access/overwrite.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/keys_name.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Returns what the folder holds, or "".
std::string kind_of(const fs::path& folder) {
  const bool has_manifest = fs::exists(fs::symlink_status(folder / kManifestName));
  if (has_manifest && fs::is_directory(folder / "shards")) {
    return "dataset";
  }
  if (is_step_folder(folder)) {
    return "checkpoint";
  }
  return list_steps(folder).empty() ? "" : "checkpoints";
}

void list_contents(ErasePlan& plan) {
  for (auto at = fs::recursive_directory_iterator(plan.folder);
       at != fs::recursive_directory_iterator(); ++at) {
    const std::string name = at->path().lexically_relative(plan.folder).string();
    const fs::file_type type = at->symlink_status().type();
    if (type == fs::file_type::directory) {
      plan.folders.push_back(name);
    } else if (type == fs::file_type::regular) {
      plan.files.push_back(name);
      plan.bytes += static_cast<std::int64_t>(at->file_size());
      const bool is_lock = at->path().filename().string().starts_with(kLockName);
      if (at->hard_link_count() > 1 && !is_lock) {
        throw PolicyError(fmt::format(
            "nothing was erased, because {} has other names (hard links), under which its contents "
            "would stay: remove those first (find -samefile)",
            at->path().string()));
      }
      if (at->path().filename().string().starts_with(kKeysFileName)) {
        plan.keys.push_back(name);
      }
    } else {
      plan.others.push_back(name);
    }
  }
  for (std::vector<std::string>* names : {&plan.files, &plan.keys, &plan.others}) {
    std::sort(names->begin(), names->end());
  }
  std::sort(plan.folders.begin(), plan.folders.end(), std::greater<>());
}

void unlink_file(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw_errno(errno, "remove", path);
  }
}

void remove_folder(const fs::path& path) {
  if (::rmdir(path.c_str()) != 0) {
    throw_errno(errno, "remove the folder", path);
  }
}

}  // namespace

ErasePlan plan_erasure(const fs::path& folder) {
  ErasePlan plan;
  try {
    if (fs::is_symlink(fs::symlink_status(folder))) {
      throw ConfigError(fmt::format("{} is a symbolic link: name the folder that it points to, {}",
                                    folder.string(), fs::read_symlink(folder).string()));
    }
    if (!fs::is_directory(folder)) {
      throw NotFound(
          fmt::format("{} is no folder: name a checkpoint, a folder of checkpoints or a "
                      "dataset",
                      folder.string()));
    }
    plan.folder = fs::canonical(folder);
    plan.kind = kind_of(plan.folder);
    if (plan.kind.empty()) {
      throw ConfigError(
          fmt::format("{} is neither a checkpoint, nor a folder of checkpoints, nor a dataset: "
                      "nothing else is erased",
                      folder.string()));
    }
    list_contents(plan);
  } catch (const fs::filesystem_error& error) {
    throw_as_error(error);
  }
  refuse_erasing_beside_run(plan);
  return plan;
}

void refuse_erasing_beside_run(const ErasePlan& plan) {
  if (plan.kind == "dataset") {
    return;
  }
  const fs::path checkpoints = plan.kind == "checkpoint" ? plan.folder.parent_path() : plan.folder;
  if (const std::optional<LockHolder> owner = lock_holder(checkpoints)) {
    throw PolicyError(
        fmt::format("nothing was erased, because a run writes to {}: {}. Wait for its "
                    "end",
                    checkpoints.string(), owner->text));
  }
}

void erase(const ErasePlan& plan, bool overwrite_all) {
  for (const std::string& name : plan.keys) {
    overwrite(plan.folder / name);
  }
  for (const std::string& name : overwrite_all ? plan.files : std::vector<std::string>()) {
    if (!std::binary_search(plan.keys.begin(), plan.keys.end(), name)) {
      overwrite(plan.folder / name);
    }
  }
  // The manifest goes last, so that this command recognizes what a failure has left.
  for (const std::vector<std::string>* names : {&plan.keys, &plan.files, &plan.others}) {
    for (const std::string& name : *names) {
      if (name != kManifestName) {
        unlink_file(plan.folder / name);
      }
    }
  }
  for (const std::string& name : plan.folders) {
    remove_folder(plan.folder / name);
  }
  unlink_file(plan.folder / kManifestName);
  remove_folder(plan.folder);
  sync_directory(plan.folder.parent_path());
}

}  // namespace trireme
