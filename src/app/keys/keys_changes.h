// Changes for whom checkpoints, datasets and the logs of runs are encrypted. Private to `trireme
// keys`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/data/file_lock.h"
#include "src/app/access/key_choice.h"
#include "src/base/file.h"
#include "src/keys/wrapped_keys.h"

namespace trireme {

// The key of the logs of a run belongs to one of its starts (src/keys/log_keys.h).
enum class EncryptedKind { checkpoint, dataset, logs };

// The wrapped key of one encrypted checkpoint or dataset, or of the logs of a run.
struct EncryptedFolder {
  std::filesystem::path folder;
  EncryptedKind kind;
  std::string seal;  // of its manifest; for logs, what stands for it
  WrappedKeys wrapped;
  std::filesystem::path file() const { return folder / kKeysFileName; }
  bool is_destroyed() const { return wrapped.recipients.empty(); }
};

// Returns the path without a slash at its end, and "." as the folder that it is.
std::filesystem::path named_folder(const std::string& given);
// Returns the checkpoint or dataset that a folder is, or all that are encrypted in it, checkpoints
// that a later run would move back and linked ones included; or the keys of logs in a folder
// log-keys. Throws NotFound if there are none of them, and ConfigError if none is encrypted.
std::vector<EncryptedFolder> encrypted_folders(const std::filesystem::path& folder);

// Returns the recipients in words.
std::string text_of_recipients(std::vector<Recipient> recipients);
// Changes the recipients of a checkpoint or dataset. Returns whether it changed any.
using ChangeRecipients = std::function<bool(std::vector<Recipient>&, const DataKey&)>;

// Changes the recipients of every checkpoint and dataset in the folder, except for destroyed ones.
// All are opened before the first one is changed, so that a missing key changes nothing, and links
// that lead to wrapped keys are refused (PolicyError). Removes what is left of earlier wrapped
// keys, and prints what became of each.
void change_recipients(const std::filesystem::path& folder, const KeyChoice& keys,
                       const ChangeRecipients& change);

// Throws what destroy_keys() would throw before it destroys anything: PolicyError if something is
// at work in the folder or a link leads to wrapped keys elsewhere, NotFound or ConfigError if it
// has no wrapped key.
void check_destroyable(const std::filesystem::path& folder);
// Overwrites every wrapped key of a checkpoint or dataset, or of all in a folder: attempts to save
// one, unfinished packs and remains included. Goes on after a failure, and then throws IoError that
// lists all; it can be repeated. The link of a draft is removed, and what it points to is left
// alone. A folder named like such a file is left alone, and listed.
void destroy_keys(const std::filesystem::path& folder);

}  // namespace trireme
