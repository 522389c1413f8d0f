#include "src/app/keys/keys_changes.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset_manifest.h"
#include "io/data/pack_folder.h"
#include "io/data/recode.h"
#include "src/app/access/file_owner.h"
#include "src/app/access/overwrite.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/interruption.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/keys/key_ring.h"
#include "src/keys/log_starts.h"
#include "src/keys/revoked_keys.h"

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

// Returns whether it is log-keys/KEY in the folder of a run.
bool is_log_key_folder(const fs::path& folder) {
  return fs::absolute(folder).parent_path().filename() == kLogKeysFolder &&
         !fs::exists(folder / kManifestName);
}

EncryptedKind kind_of(const fs::path& folder) {
  return is_log_key_folder(folder)   ? EncryptedKind::logs
         : is_dataset_folder(folder) ? EncryptedKind::dataset
                                     : EncryptedKind::checkpoint;
}

// Returns the folder itself if it is a checkpoint or a dataset, or has the key of logs, else its
// folders, hidden ones included.
std::vector<fs::path> folders_with_keys(const fs::path& folder) {
  if (is_dataset_folder(folder) || is_step_folder(folder) || is_log_key_folder(folder)) {
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

// Returns the files with wrapped keys in the folder of a checkpoint or dataset. An unfinished pack
// keeps its key in a folder of its own.
std::vector<fs::path> keys_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::path& place : {folder, folder / kNotesFolder}) {
    if (!fs::is_directory(fs::symlink_status(place))) {
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(place)) {
      if (is_keys_file(entry.path())) {
        files.push_back(entry.path());
      }
    }
  }
  return files;
}

// Returns what stands in the keys.json of logs for the seal of a manifest.
std::string contents_of_logs(const fs::path& folder) {
  const fs::path file = folder / kKeysFileName;
  const WrappedKeys keys = parse_wrapped_keys(read_file(file, kMostKeysBytes), file.string());
  return contents_of(parse_log_contents(keys.contents, keys.data_key));
}

// What a manifest says about encryption, or what stands for it.
struct SealedManifest {
  std::string data_key;  // empty if nothing is encrypted
  std::string seal;
};

SealedManifest read_sealed_manifest(const fs::path& folder) {
  const fs::path file = folder / kManifestName;
  if (is_log_key_folder(folder)) {
    return {folder.filename().string(), contents_of_logs(folder)};
  }
  if (is_dataset_folder(folder)) {
    const DatasetManifest manifest =
        parse_dataset_manifest(read_manifest_text(folder), file.string());
    return {manifest.data_key, manifest.seal};
  }
  const Manifest manifest = parse_manifest(read_file(file), file.string());
  return {manifest.data_key, manifest.seal};
}

// Returns nothing if it is not encrypted. Reads manifest and keys directly, because the usual
// functions skip folders that have lost their keys.
std::optional<EncryptedFolder> read_encrypted(const fs::path& folder) {
  const SealedManifest manifest = read_sealed_manifest(folder);
  if (manifest.data_key.empty()) {
    return std::nullopt;
  }
  const fs::path keys = folder / kKeysFileName;
  EncryptedFolder read{folder, kind_of(folder), manifest.seal,
                       parse_wrapped_keys(read_file(keys, kMostKeysBytes), keys.string())};
  if (read.wrapped.contents != read.seal || read.wrapped.data_key != manifest.data_key) {
    throw DataError(fmt::format("{}: belongs to another manifest", keys.string()));
  }
  return read;
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

// Writes a keys.json. A signal ends the process only afterwards, so that no draft of it is left.
void write_keys_file(const fs::path& file, const std::string& text) {
  int number = 0;
  {
    const NotedSignals noted;
    write_file_durably(file, text);
    number = interruption();
  }
  if (number != 0) {
    std::fflush(nullptr);
    end_by_signal(number);
  }
}

// Replaces keys.json, which keeps its owner and its mode.
void write_keys(const EncryptedFolder& changed) {
  const std::optional<FileOwner> owner = owner_of(changed.file());
  write_keys_file(changed.file(), to_text(changed.wrapped));
  if (owner) {
    give_owner(changed.file(), *owner);
  }
}

// Returns a keys.json without recipients, which is left where a key was destroyed, so that later
// commands can say what happened. Its data_key is empty if there is no manifest, so that nothing
// asks for the key.
WrappedKeys destroyed_keys(const fs::path& folder) {
  WrappedKeys nobody;
  nobody.mac = std::string(64, '0');
  try {
    const SealedManifest manifest = read_sealed_manifest(folder);
    nobody.data_key = manifest.data_key;
    nobody.contents = manifest.seal;
  } catch (const NotFound&) {
    // Nothing asks for the key.
  } catch (const DataError&) {
    // Nothing opens it anyway.
  }
  return nobody;
}

// Returns whether `place`, in a folder of checkpoints or datasets, is one of them that is in use.
bool is_in_use(const fs::path& place) {
  return is_log_key_folder(place) || is_transient(place, TransientName::Kind::replaced) ||
         parse_step_folder_name(place.filename().string()) ||
         (is_dataset_folder(place) && fs::exists(place / kDatasetManifestName));
}

// Returns which of the recipients before a change are none after it, for the end of a line.
std::string removed_text(const std::vector<Recipient>& before, const std::vector<Recipient>& now) {
  std::vector<Recipient> removed = before;
  std::erase_if(removed, [&](const Recipient& each) {
    return std::any_of(now.begin(), now.end(), [&](const Recipient& left) {
      return left.kind == each.kind && left.key == each.key;
    });
  });
  return removed.empty() ? "" : fmt::format("; removed: {}", text_of_recipients(removed));
}

// Throws what to say of a folder in which nothing is encrypted. found: whether it is a checkpoint
// or dataset, or holds some.
[[noreturn]] void throw_nothing_encrypted(const fs::path& folder, bool found) {
  if (found) {
    throw ConfigError(fmt::format("no checkpoint or dataset in {} is encrypted", folder.string()));
  }
  const fs::path logs = folder / kLogKeysFolder;
  const std::string missing = no_checkpoint_in(folder).what();
  throw NotFound(fs::is_directory(logs) ? fmt::format("{}; the keys of its logs are in {}", missing,
                                                      printable(logs.string()))
                                        : missing);
}

// Says so if the logs of a run whose checkpoints have lost their keys can still be opened.
void warn_of_log_keys(const fs::path& checkpoints) {
  const fs::path logs = fs::absolute(checkpoints).lexically_normal().parent_path() / kLogKeysFolder;
  if (checkpoints.filename() == "checkpoints" && fs::is_directory(logs)) {
    fmt::print(
        "{}: left as it is: it has the keys of the run's logs, which `trireme keys destroy` "
        "destroys separately\n",
        printable(logs.string()));
  }
}

}  // namespace

std::string text_of_recipients(std::vector<Recipient> recipients) {
  WrappedKeys keys;
  keys.recipients = std::move(recipients);
  return recipients_text(keys);
}

fs::path named_folder(const std::string& given) {
  const fs::path path = fs::path(given).lexically_normal();
  if (path == "." || path.filename() == "..") {
    return fs::weakly_canonical(path);
  }
  return path.has_filename() ? path : path.parent_path();
}

fs::path access_folder(const fs::path& folder) {
  const fs::path full = fs::absolute(folder).lexically_normal();
  if (full.filename() == kLogKeysFolder) {
    return full.parent_path();
  }
  return is_log_key_folder(full) ? full.parent_path().parent_path() : folder;
}

std::vector<EncryptedFolder> encrypted_folders(const fs::path& folder) {
  if (!fs::exists(folder)) {
    throw no_checkpoint_in(folder);
  }
  const std::vector<fs::path> places = folders_with_keys(folder);
  const bool is_one = places.size() == 1 && places.front() == folder;
  std::vector<EncryptedFolder> encrypted;
  bool found = false;
  for (const fs::path& place : places) {
    if (!is_one && !is_in_use(place)) {
      continue;
    }
    found = true;
    if (std::optional<EncryptedFolder> read = read_encrypted(place)) {
      encrypted.push_back(std::move(*read));
    }
  }
  if (encrypted.empty()) {
    throw_nothing_encrypted(folder, found);
  }
  return encrypted;
}

KeysLock::KeysLock(const fs::path& folder) {
  const bool is_step = !is_dataset_folder(folder) && is_step_folder(folder);
  const fs::path checkpoints = is_step ? fs::absolute(folder).parent_path() : folder;
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

void change_recipients(const fs::path& folder, const KeyChoice& keys,
                       const ChangeRecipients& change) {
  const KeysLock lock(folder);
  const KeyRing ring(keys.options().uris);
  std::vector<EncryptedFolder> changed;
  std::vector<std::string> removed;  // of each, for the line that says so
  for (EncryptedFolder& found : encrypted_folders(folder)) {
    if (found.is_destroyed()) {
      fmt::print("{}: left as it is, because its key was destroyed\n",
                 printable(found.folder.string()));
      continue;
    }
    const std::string origin = found.file().string();
    const DataKey key = unwrap_to_change(ring, found.wrapped, origin);
    check_wrapped_keys(found.wrapped, key, found.seal, origin);
    const std::vector<Recipient> before = found.wrapped.recipients;
    if (!change(found.wrapped.recipients, key)) {
      continue;
    }
    if (found.is_destroyed()) {
      throw PolicyError(fmt::format(
          "{}: this would remove the last recipient, and nobody could read the data any "
          "more: if you want that, use `trireme keys destroy`",
          origin));
    }
    check_passphrases(found.wrapped);
    found.wrapped.sign(key);
    removed.push_back(removed_text(before, found.wrapped.recipients));
    changed.push_back(std::move(found));
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    write_keys(changed[i]);
    fmt::print("{}: {}{}\n", printable(changed[i].folder.string()),
               recipients_text(changed[i].wrapped), removed[i]);
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
      const WrappedKeys nobody = destroyed_keys(place);
      for (const fs::path& file : files) {
        erase_keys_file(file);
      }
      if (!files.empty()) {
        ++found;
        if (!nobody.data_key.empty()) {
          write_keys_file(place / kKeysFileName, to_text(nobody));
        }
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
    const std::vector<fs::path> places = folders_with_keys(folder);
    throw_nothing_encrypted(folder, places == std::vector{folder} ||
                                        std::any_of(places.begin(), places.end(), is_in_use));
  }
  warn_of_log_keys(folder);
}

}  // namespace trireme
