#include "src/app/keys/keys_folders.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset_manifest.h"
#include "io/data/pack_folder.h"
#include "io/data/recode.h"
#include "src/app/access/overwrite.h"
#include "src/base/error.h"
#include "src/base/is_locked.h"
#include "src/base/keys_name.h"
#include "src/base/lock_mark.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/base/say.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

bool is_keys_file(const fs::path& path) {
  return path.filename().string().starts_with(kKeysFileName);
}

// Throws PolicyError if the run whose logs have their keys in `folder` is alive.
void check_no_run_writes_logs(const fs::path& folder) {
  const fs::path run = access_folder(folder);
  if (run == folder) {
    return;
  }
  const fs::path lock = run / ".lock";
  const std::optional<LockHolder> owner = lock_holder(run / "checkpoints");
  if (owner || is_locked(lock)) {
    throw PolicyError(
        fmt::format("nothing was changed, because a run writes logs to {}{}. Stop it, change "
                    "encryption.keys, and change the recipients before it starts again",
                    printable(run.string()), owner ? ": " + owner->text : lock_holder_text(lock)));
  }
}

// Returns whether it is one checkpoint or dataset, or has the key of logs, rather than holds some.
bool is_one_folder(const fs::path& folder) {
  return is_dataset_folder(folder) || is_step_folder(folder) || is_log_key_folder(folder);
}

std::vector<fs::path> links_in(const fs::path& folder) {
  std::vector<fs::path> links;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_symlink()) {
      links.push_back(entry.path());
    }
  }
  std::sort(links.begin(), links.end());
  return links;
}

// Throws PolicyError for a link that cannot be followed now, such as one to a file system that is
// not mounted: nobody knows which keys are there. Hidden ones are the locks of editors.
void refuse_broken_links(const fs::path& folder) {
  for (const fs::path& link : links_in(folder)) {
    std::error_code code;
    (void)fs::canonical(link, code);
    if (code && !link.filename().string().starts_with(".")) {
      throw PolicyError(fmt::format(
          "nothing was changed, because {} is a symbolic link to {}, which cannot be followed "
          "({}), so that nobody knows which keys are there: remove the link, or mount its target "
          "and name that by itself",
          printable(link.string()), printable(fs::read_symlink(link).string()), code.message()));
    }
  }
}

}  // namespace

bool is_log_key_folder(const fs::path& folder) {
  return fs::absolute(folder).parent_path().filename() == kLogKeysFolder &&
         !fs::exists(folder / kManifestName);
}

std::vector<fs::path> folders_with_keys(const fs::path& folder) {
  if (is_one_folder(folder)) {
    return {folder};
  }
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && !entry.is_symlink()) {
      folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

bool is_in_use(const fs::path& place) {
  const std::string name = place.filename().string();
  const auto transient = parse_transient_name(name);
  return is_log_key_folder(place) ||
         (transient && transient->kind == TransientName::Kind::replaced) ||
         parse_step_folder_name(name) ||
         (is_dataset_folder(place) && fs::exists(place / kDatasetManifestName));
}

std::vector<fs::path> linked_folders(const fs::path& folder) {
  if (is_one_folder(folder)) {
    return {};
  }
  const fs::path own = fs::canonical(folder);
  std::vector<fs::path> links;
  for (const fs::path& link : links_in(folder)) {
    std::error_code code;
    const fs::path target = fs::canonical(link, code);
    if (!code && fs::is_directory(target) && target.parent_path() != own && target != own) {
      links.push_back(link);
    }
  }
  return links;
}

void refuse_linked_keys(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    return;  // the command says so
  }
  for (const fs::path& link : linked_folders(folder)) {
    if (!keys_files(link).empty()) {
      throw PolicyError(fmt::format(
          "nothing was changed, because {} is a symbolic link to {}, which has keys of its own: "
          "name that folder by itself, and move the link elsewhere while you change the others",
          printable(link.string()), printable(fs::canonical(link).string())));
    }
  }
  if (!is_one_folder(folder)) {
    refuse_broken_links(folder);
  }
  for (const fs::path& place : folders_with_keys(folder)) {
    for (const fs::path& link :
         {place / kKeysFileName, place / kNotesFolder, place / kNotesFolder / kKeysFileName}) {
      if (fs::is_symlink(fs::symlink_status(link))) {
        throw PolicyError(fmt::format(
            "nothing was changed, because {} is a symbolic link to {}, where a wrapped key would "
            "stay: put what it leads to in the place of the link (mv), or remove the link if that "
            "is of no use here",
            printable(link.string()), printable(fs::read_symlink(link).string())));
      }
    }
  }
}

std::vector<fs::path> keys_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& place : {folder, folder / kNotesFolder}) {
    if (!fs::is_directory(place == folder ? fs::status(place) : fs::symlink_status(place))) {
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(place)) {
      if (is_keys_file(entry.path())) {
        files.push_back(entry.path());
      }
    }
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    const bool is_first = a.filename() == kKeysFileName;
    return is_first != (b.filename() == kKeysFileName) ? is_first : a < b;
  });
  return files;
}

void erase_keys_file(const fs::path& path) {
  const fs::file_type type = fs::symlink_status(path).type();
  if (type == fs::file_type::directory) {
    throw IoError(
        fmt::format("{} is a folder, which this program has not made: look at what it holds, and "
                    "remove it",
                    printable(path.string())));
  }
  std::error_code unknown;
  if (const auto names = fs::hard_link_count(path, unknown);
      type == fs::file_type::regular && !unknown && names > 1) {
    say(
        fmt::format("warning: {} was not overwritten, because it has {} other {} (hard links), "
                    "perhaps in a backup: the wrapped key is still in the file there",
                    printable(path.string()), names - 1, names == 2 ? "name" : "names"));
  } else if (type == fs::file_type::regular) {
    overwrite(path);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw_errno(errno, "remove", path);
  }
}

fs::path access_folder(const fs::path& folder) {
  const fs::path full = fs::absolute(folder).lexically_normal();
  if (full.filename() == kLogKeysFolder) {
    return full.parent_path();
  }
  return is_log_key_folder(full) ? full.parent_path().parent_path() : folder;
}

KeysLock::KeysLock(const fs::path& folder) {
  check_no_run_writes_logs(folder);
  const bool is_step = !is_dataset_folder(folder) && is_step_folder(folder);
  // The run that may write to a step is the one of its own folder, wherever a link to it lies.
  const fs::path checkpoints = is_step ? fs::weakly_canonical(folder).parent_path() : folder;
  if (const std::optional<LockHolder> owner = lock_holder(checkpoints)) {
    throw PolicyError(fmt::format(
        "nothing was changed, because a run writes to {}: {}. Stop it, change encryption.keys, and "
        "change the recipients before it starts again",
        checkpoints.string(), owner->text));
  }
  directory_.reset(::open(checkpoints.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory_ && ::flock(directory_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw PolicyError(
        fmt::format("another `trireme keys` is at work in {}: try again when it has ended",
                    checkpoints.string()));
  }
  const bool exists = fs::is_directory(folder);
  for (const fs::path& place : exists ? folders_with_keys(folder) : std::vector<fs::path>()) {
    for (const char* const name : {kPackLockName, kRecodeLockName}) {
      if (!fs::exists(fs::symlink_status(place / name))) {
        continue;
      }
      std::optional<FileLock> lock = FileLock::try_take(place / name);
      if (!lock) {
        throw PolicyError(fmt::format(
            "nothing was changed, because another `trireme data` command writes to {}: try again "
            "when it has ended",
            place.string()));
      }
      datasets_.push_back(std::move(*lock));
    }
  }
}

}  // namespace trireme
