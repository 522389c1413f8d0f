#include "src/app/evidence/erase_plan.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/workers.h"
#include "src/app/access/overwrite.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/keys_name.h"
#include "src/base/printable.h"
#include "src/evidence/file_digests.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

bool is_manifest(const std::string& name) { return fs::path(name).filename() == kManifestName; }

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

// Returns whether a manifest, perhaps a damaged one, says that its shards are encrypted.
bool says_encrypted(const fs::path& manifest) {
  constexpr const char* kField = "encryption";
  std::string text;
  try {
    text = read_file(manifest);
    const nlohmann::json object = parse_json(text);
    return object.is_object() && object.contains(kField);
  } catch (const Error&) {
    return text.find(fmt::format("\"{}\":", kField)) != std::string::npos;
  }
}

void refuse_other_names(const fs::directory_entry& file) {
  const bool is_lock = file.path().filename().string().starts_with(kLockName);
  if (file.hard_link_count() > 1 && !is_lock) {
    throw PolicyError(fmt::format(
        "nothing was erased, because {} has other names (hard links), under which its contents "
        "would stay: remove those first (find -samefile)",
        printable(file.path().string())));
  }
}

// Returns where a symbolic link leads, even if nothing is there now; "" if it leads to itself.
fs::path target_of(const fs::path& link) {
  constexpr int kMostLinks = 40;  // as many as Linux follows
  fs::path at = link;
  for (int links = 0; links < kMostLinks; ++links) {
    at = fs::weakly_canonical(at.parent_path()) / at.filename();
    if (!fs::is_symlink(fs::symlink_status(at))) {
      return fs::weakly_canonical(at);
    }
    at = at.parent_path() / fs::read_symlink(at);
  }
  return {};
}

// What a link within the folder leads to is erased as well.
void refuse_link_out(const fs::path& link, const fs::path& folder) {
  const fs::path target = target_of(link);
  const auto [in_folder, in_target] =
      std::mismatch(folder.begin(), folder.end(), target.begin(), target.end());
  if (in_folder != folder.end()) {
    throw PolicyError(fmt::format(
        "nothing was erased, because {} is a symbolic link to {}, whose contents would stay: "
        "remove the link, and erase what it leads to by itself, if that shall be gone as well",
        printable(link.string()), printable(fs::read_symlink(link).string())));
  }
}

void list_entry(const fs::directory_entry& entry, ErasePlan& plan) {
  const std::string name = entry.path().lexically_relative(plan.folder).string();
  const fs::file_type type = entry.symlink_status().type();
  if (type == fs::file_type::directory) {
    plan.folders.push_back(name);
    return;
  }
  if (type != fs::file_type::regular) {
    if (type == fs::file_type::symlink) {
      refuse_link_out(entry.path(), plan.folder);
    }
    plan.others.push_back(name);
    return;
  }
  refuse_other_names(entry);
  plan.files.push_back(name);
  plan.bytes += static_cast<std::int64_t>(entry.file_size());
  if (entry.path().filename().string().starts_with(kKeysFileName)) {
    plan.keys.push_back(name);
  }
}

void list_contents(ErasePlan& plan) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(plan.folder)) {
    list_entry(entry, plan);
  }
  for (std::vector<std::string>* names : {&plan.files, &plan.keys, &plan.others}) {
    std::sort(names->begin(), names->end());
  }
  std::sort(plan.folders.begin(), plan.folders.end(), std::greater<>());
  for (const std::string& name : plan.files) {
    const std::string keys = (fs::path(name).parent_path() / kKeysFileName).string();
    if (is_manifest(name) && !std::binary_search(plan.keys.begin(), plan.keys.end(), keys) &&
        says_encrypted(plan.folder / name)) {
      plan.missing_keys.push_back(keys);
    }
  }
}

// Returns whether nothing but zeros stands where overwrite() begins.
bool begins_with_zeros(const fs::path& path) {
  std::string start(4096, '\0');
  start.resize(static_cast<std::size_t>(
      File::open_to_read(path).read_at(0, start.data(), std::ssize(start))));
  return start.find_first_not_of('\0') == std::string::npos;
}

void unlink_file(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw_errno(errno, "remove", path);
  }
}

void remove_folder(const fs::path& path) {
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) {
    throw_errno(errno, "remove the folder", path);
  }
}

// Returns the folders that have a manifest in them or below.
std::set<std::string> folders_with_manifests(const ErasePlan& plan) {
  std::set<std::string> folders;
  for (const std::string& name : plan.files) {
    for (fs::path at = fs::path(name).parent_path(); is_manifest(name) && !at.empty();
         at = at.parent_path()) {
      folders.insert(at.string());
    }
  }
  return folders;
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

ErasePlan plan_rest(const fs::path& folder, const Erasure& draft) {
  ErasePlan plan;
  plan.kind = draft.kind;
  try {
    const fs::path place = fs::weakly_canonical(fs::absolute(folder));
    plan.folder = place.has_filename() ? place : place.parent_path();
    if (file_uri(plan.folder.string()) != draft.uri) {
      throw PolicyError(fmt::format(
          "nothing was erased, because the draft beside this certificate is about {}: erase that "
          "once more, or choose another name for this certificate",
          printable(path_of_uri(draft.uri))));
    }
    const fs::file_type type = fs::symlink_status(plan.folder).type();
    if (type == fs::file_type::directory) {
      list_contents(plan);
    } else if (type != fs::file_type::not_found) {
      throw PolicyError(
          fmt::format("{} is no folder any more: look at what it is, and move it away",
                      printable(plan.folder.string())));
    }
  } catch (const fs::filesystem_error& error) {
    throw_as_error(error);
  }
  refuse_erasing_beside_run(plan);
  return plan;
}

std::vector<Subject> digests_of(const ErasePlan& plan) {
  std::vector<fs::path> paths;
  for (const std::string& name : plan.files) {
    paths.push_back(plan.folder / name);
  }
  const std::vector<FileDigest> digests = digest_files(paths, available_processors());
  std::vector<Subject> files;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (digests[i].sha256.empty()) {
      throw IoError(fmt::format(
          "nothing was erased, because the certificate needs the digest of every file: {}",
          digests[i].trouble));
    }
    files.push_back({plan.files[i], digests[i].sha256});
  }
  return files;
}

void refuse_unlisted(const ErasePlan& plan, const std::vector<Subject>& left,
                     const Erasure& draft) {
  std::map<std::string, std::string> listed;
  for (const Subject& file : draft.files) {
    listed.emplace(file.name, file.sha256);
  }
  for (const Subject& file : left) {
    const auto before = listed.find(file.name);
    const bool is_overwritten = draft.overwritten || std::find(draft.keys.begin(), draft.keys.end(),
                                                               file.name) != draft.keys.end();
    if (before != listed.end() &&
        (before->second == file.sha256 ||
         (is_overwritten && begins_with_zeros(plan.folder / file.name)))) {
      continue;
    }
    throw PolicyError(fmt::format(
        "nothing more was erased, because {} was {} since the erasure was interrupted: move it "
        "away, or give the certificate of what is there now another name",
        printable((plan.folder / file.name).string()),
        before == listed.end() ? "made" : "changed"));
  }
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
  for (const std::vector<std::string>* names : {&plan.keys, &plan.files, &plan.others}) {
    for (const std::string& name : *names) {
      if (!is_manifest(name)) {
        unlink_file(plan.folder / name);
      }
    }
  }
  // Manifests go last, so that the folder and each step are recognized for what they are until
  // nothing else is left.
  const std::set<std::string> with_manifests = folders_with_manifests(plan);
  for (const bool with_manifest : {false, true}) {
    for (const std::string& name : plan.folders) {
      if (with_manifests.contains(name) == with_manifest) {
        unlink_file(plan.folder / name / kManifestName);
        remove_folder(plan.folder / name);
      }
    }
  }
  unlink_file(plan.folder / kManifestName);
  remove_folder(plan.folder);
  sync_directory(plan.folder.parent_path());
}

}  // namespace trireme
