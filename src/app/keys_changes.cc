#include "src/app/keys_changes.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "io/checkpoint/store.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/keys/key_ring.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostKeysBytes = std::int64_t{16} << 20;

bool is_keys_file(const fs::path& path) {
  return path.filename().string().starts_with(kKeysFileName);
}

bool is_transient(const fs::path& path, TransientName::Kind kind) {
  const auto name = parse_transient_name(path.filename().string());
  return name && name->kind == kind;
}

// Returns the folder itself if it is a step, else its folders, hidden ones included.
std::vector<fs::path> folders_with_keys(const fs::path& folder) {
  if (is_step_folder(folder)) {
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

std::vector<fs::path> keys_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_keys_file(entry.path())) {
      files.push_back(entry.path());
    }
  }
  return files;
}

// Returns nothing for a step that is not encrypted. Reads manifest and keys itself: a step whose
// key was destroyed does not count as whole.
std::optional<EncryptedStep> read_step(const fs::path& folder) {
  const fs::path file = folder / kManifestName;
  const Manifest manifest = parse_manifest(read_file(file), file.string());
  if (manifest.data_key.empty()) {
    return std::nullopt;
  }
  const fs::path keys = folder / kKeysFileName;
  EncryptedStep read{folder, manifest.seal,
                     parse_wrapped_keys(read_file(keys, kMostKeysBytes), keys.string())};
  if (read.wrapped.contents != read.seal || read.wrapped.data_key != manifest.data_key) {
    throw DataError(fmt::format("{}: belongs to another checkpoint", keys.string()));
  }
  return read;
}

// Overwrites a file in place. Follows no link, and leaves what has other names alone, too.
void overwrite(const fs::path& path) {
  const UniqueHandle<FileDescriptorTraits> file(
      ::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file) {
    throw_errno(errno, "open", path);
  }
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) {
    return;
  }
  const std::string zeros(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t at = 0; at < zeros.size();) {
    const ssize_t put =
        ::pwrite(file.get(), zeros.data() + at, zeros.size() - at, static_cast<off_t>(at));
    if (put <= 0 && errno != EINTR) {
      throw_errno(errno, "overwrite", path);
    }
    at += static_cast<std::size_t>(std::max<ssize_t>(put, 0));
  }
  if (::fsync(file.get()) != 0) {
    throw_errno(errno, "sync", path);
  }
}

void erase_keys_file(const fs::path& path) {
  if (!fs::is_symlink(fs::symlink_status(path))) {
    overwrite(path);
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw_errno(errno, "remove", path);
  }
}

// Removes drafts of keys.json, and the keys of attempts and remains, which nothing reads again.
void erase_remains(const fs::path& folder) {
  for (const fs::path& place : folders_with_keys(folder)) {
    const bool is_dead = is_transient(place, TransientName::Kind::attempt) ||
                         is_transient(place, TransientName::Kind::trash);
    for (const fs::path& file : keys_files(place)) {
      if (is_dead || file.filename() != kKeysFileName) {
        erase_keys_file(file);
      }
    }
  }
}

// Replaces keys.json, which keeps its owner and its mode.
void write_keys(const EncryptedStep& step) {
  struct stat status {};
  const bool is_known = ::stat(step.file().c_str(), &status) == 0;
  write_file_durably(step.file(), to_text(step.wrapped));
  if (is_known) {
    (void)::chmod(step.file().c_str(), status.st_mode & 07777U);
    [[maybe_unused]] const int same_owner =
        ::chown(step.file().c_str(), status.st_uid, status.st_gid);
  }
}

// Leaves a keys.json without recipients, so that later commands can say what happened. Without a
// manifest, nothing asks for the key.
void mark_destroyed(const fs::path& step) {
  const fs::path file = step / kManifestName;
  WrappedKeys nobody;
  nobody.mac = std::string(64, '0');
  try {
    const Manifest manifest = parse_manifest(read_file(file), file.string());
    nobody.data_key = manifest.data_key;
    nobody.contents = manifest.seal;
  } catch (const NotFound&) {
    return;
  } catch (const DataError&) {
    return;
  }
  write_file_durably(step / kKeysFileName, to_text(nobody));
}

}  // namespace

fs::path named_folder(const std::string& given) {
  const fs::path path = fs::path(given).lexically_normal();
  if (path == "." || path.filename() == "..") {
    return fs::weakly_canonical(path);
  }
  return path.has_filename() ? path : path.parent_path();
}

std::vector<EncryptedStep> encrypted_steps(const fs::path& folder) {
  if (!fs::exists(folder) || (!is_step_folder(folder) && list_steps(folder).empty())) {
    throw no_checkpoint_in(folder);
  }
  std::vector<EncryptedStep> encrypted;
  for (const fs::path& place : folders_with_keys(folder)) {
    const bool is_step = place == folder || parse_step_folder_name(place.filename().string()) ||
                         is_transient(place, TransientName::Kind::replaced);
    if (std::optional<EncryptedStep> step = is_step ? read_step(place) : std::nullopt) {
      encrypted.push_back(std::move(*step));
    }
  }
  if (encrypted.empty()) {
    throw ConfigError(fmt::format("no checkpoint in {} is encrypted", folder.string()));
  }
  return encrypted;
}

KeysLock::KeysLock(const fs::path& folder) {
  const fs::path checkpoints = is_step_folder(folder) ? fs::absolute(folder).parent_path() : folder;
  if (const std::optional<LockHolder> owner = lock_holder(checkpoints)) {
    throw PolicyError(fmt::format(
        "nothing was changed, because a run writes to {}: {}. Stop it, change encryption.keys, and "
        "change the recipients before it starts again",
        checkpoints.string(), owner->text));
  }
  directory_.reset(::open(checkpoints.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory_ && ::flock(directory_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw PolicyError(
        fmt::format("another `trireme keys` changes checkpoints in {}: try again when it has ended",
                    checkpoints.string()));
  }
}

void change_recipients(const fs::path& folder, const KeyChoice& keys,
                       const ChangeRecipients& change) {
  const KeysLock lock(folder);
  const KeyRing ring(keys.options().uris);
  std::vector<EncryptedStep> changed;
  for (EncryptedStep& step : encrypted_steps(folder)) {
    if (step.is_destroyed()) {
      fmt::print("{}: left as it is, because its key was destroyed\n",
                 printable(step.folder.string()));
      continue;
    }
    const std::string origin = step.file().string();
    const DataKey key = ring.unwrap(step.wrapped, origin);
    check_wrapped_keys(step.wrapped, key, step.seal, origin);
    if (!change(step.wrapped.recipients, key)) {
      continue;
    }
    if (step.is_destroyed()) {
      throw PolicyError(fmt::format(
          "{}: this would remove the last recipient, and nobody could read the checkpoint any "
          "more: if you want that, use `trireme keys destroy`",
          origin));
    }
    check_passphrases(step.wrapped);
    step.wrapped.sign(key);
    changed.push_back(std::move(step));
  }
  for (const EncryptedStep& step : changed) {
    write_keys(step);
    fmt::print("{}: {}\n", printable(step.folder.string()), recipients_text(step.wrapped));
  }
  erase_remains(folder);
}

void destroy_keys(const fs::path& folder) {
  const KeysLock lock(folder);
  std::vector<std::string> failures;
  std::size_t found = 0;
  for (const fs::path& place : folders_with_keys(folder)) {
    try {
      const std::vector<fs::path> files = keys_files(place);
      for (const fs::path& file : files) {
        erase_keys_file(file);
      }
      if (!files.empty()) {
        ++found;
        mark_destroyed(place);
        fmt::print("{}: its key was destroyed\n", printable(place.string()));
      }
    } catch (const Error& error) {
      failures.emplace_back(error.what());
    } catch (const fs::filesystem_error& error) {
      failures.emplace_back(error.what());
    }
  }
  if (!failures.empty()) {
    throw IoError(
        fmt::format("not all keys are destroyed; do it again when this is put right:\n  "
                    "{}",
                    fmt::join(failures, "\n  ")));
  }
  if (found == 0) {
    throw ConfigError(fmt::format("no checkpoint in {} is encrypted", folder.string()));
  }
}

}  // namespace trireme
