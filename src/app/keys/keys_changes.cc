#include "src/app/keys/keys_changes.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <system_error>

#include <fmt/ranges.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset_manifest.h"
#include "src/app/access/file_owner.h"
#include "src/app/keys/keys_folders.h"
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

bool is_transient(const fs::path& path, TransientName::Kind kind) {
  const auto name = parse_transient_name(path.filename().string());
  return name && name->kind == kind;
}

EncryptedKind kind_of(const fs::path& folder) {
  return is_log_key_folder(folder)   ? EncryptedKind::logs
         : is_dataset_folder(folder) ? EncryptedKind::dataset
                                     : EncryptedKind::checkpoint;
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

// Removes drafts of keys.json, and the keys of attempts and remains, which nothing reads again.
void erase_remains(const fs::path& folder) {
  for (const fs::path& place : folders_with_keys(folder)) {
    const bool is_dead = is_transient(place, TransientName::Kind::attempt) ||
                         is_transient(place, TransientName::Kind::trash);
    for (const fs::path& file : keys_files(place)) {
      if (fs::is_directory(fs::symlink_status(file))) {
        fmt::print("{}: left as it is: a folder, which this program has not made\n",
                   printable(file.string()));
      } else if (is_dead || file.filename() != kKeysFileName) {
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
  } catch (const Error&) {
    // Without a manifest, nothing asks for the key, and with a damaged one, nothing opens it.
  } catch (const fs::filesystem_error&) {
    // Likewise. The wrapped key must go all the same.
  }
  return nobody;
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

// What has kept keys from being erased.
struct Failures {
  std::vector<std::string> lines;
  bool are_refusals = true;  // whether only permissions were missing

  void add(const Error& error) {
    lines.emplace_back(error.what());
    are_refusals = are_refusals && error.exit_code() == ExitCode::refused;
  }
};

// Erases all files with wrapped keys in the folder of a checkpoint or dataset. What cannot be
// erased is added to `failures` and keeps nothing else.
void destroy_keys_in(const fs::path& place, Failures& failures) {
  const std::vector<fs::path> files = keys_files(place);
  const WrappedKeys nobody = destroyed_keys(place);
  const std::size_t before = failures.lines.size();
  for (const fs::path& file : files) {
    try {
      erase_keys_file(file);
    } catch (const Error& error) {
      failures.add(error);
    }
  }
  const fs::path file = place / kKeysFileName;
  if (!files.empty() && !nobody.data_key.empty() && !fs::exists(fs::symlink_status(file))) {
    write_keys_file(file, to_text(nobody));
  }
  if (!files.empty() && failures.lines.size() == before) {
    fmt::print("{}: its key was destroyed\n", printable(place.string()));
  }
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

std::vector<EncryptedFolder> encrypted_folders(const fs::path& folder) {
  if (!fs::exists(folder)) {
    throw no_checkpoint_in(folder);
  }
  std::vector<fs::path> places = folders_with_keys(folder);
  const bool is_one = places.size() == 1 && places.front() == folder;
  const std::vector<fs::path> links = linked_folders(folder);
  places.insert(places.end(), links.begin(), links.end());
  std::sort(places.begin(), places.end());
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

void change_recipients(const fs::path& folder, const KeyChoice& keys,
                       const ChangeRecipients& change) {
  const KeyRing ring(keys.options().uris);  // may ask a person for a PIN or passphrase
  const KeysLock lock(folder);
  refuse_linked_keys(folder);
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

void check_destroyable(const fs::path& folder) {
  const KeysLock lock(folder);
  refuse_linked_keys(folder);
  const std::vector<fs::path> places = folders_with_keys(folder);
  if (std::none_of(places.begin(), places.end(),
                   [](const fs::path& place) { return !keys_files(place).empty(); })) {
    throw_nothing_encrypted(folder, places == std::vector{folder} ||
                                        std::any_of(places.begin(), places.end(), is_in_use));
  }
}

void destroy_keys(const fs::path& folder) {
  check_destroyable(folder);
  const KeysLock lock(folder);
  refuse_linked_keys(folder);
  Failures failures;
  for (const fs::path& place : folders_with_keys(folder)) {
    try {
      destroy_keys_in(place, failures);
    } catch (const Error& error) {
      failures.add(error);
    } catch (const fs::filesystem_error& error) {
      failures.add(IoError(error.what()));
    }
  }
  if (!failures.lines.empty()) {
    const std::string what =
        fmt::format("not all keys are destroyed; do it again when this is put right:\n  {}",
                    fmt::join(failures.lines, "\n  "));
    if (failures.are_refusals) {
      throw PolicyError(what);
    }
    throw IoError(what);
  }
  warn_of_log_keys(folder);
}

}  // namespace trireme
