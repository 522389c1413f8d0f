// Changes for whom checkpoints are encrypted. Private to `trireme keys`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "src/app/key_choice.h"
#include "src/base/file.h"
#include "src/keys/wrapped_keys.h"

namespace trireme {

// The wrapped key of one encrypted step.
struct EncryptedStep {
  std::filesystem::path folder;
  std::string seal;  // of its manifest
  WrappedKeys wrapped;
  std::filesystem::path file() const { return folder / kKeysFileName; }
  bool is_destroyed() const { return wrapped.recipients.empty(); }
};

// Returns the path without a slash at its end, and "." as the folder that it is.
std::filesystem::path named_folder(const std::string& given);
// Returns the step that a folder is, or all encrypted steps of a checkpoint folder, those that a
// later run would move back included. Throws ConfigError if none is encrypted.
std::vector<EncryptedStep> encrypted_steps(const std::filesystem::path& folder);

// Keeps other `trireme keys` commands away from a checkpoint folder, as far as its file system has
// locks. Throws PolicyError if one is at work there, or if a run may be writing.
class KeysLock {
 public:
  explicit KeysLock(const std::filesystem::path& folder);

 private:
  UniqueHandle<FileDescriptorTraits> directory_;
};

// Changes the recipients of a step. Returns whether it changed any.
using ChangeRecipients = std::function<bool(std::vector<Recipient>&, const DataKey&)>;

// Changes the recipients of every step that a key opens, except for destroyed ones. All steps are
// opened before the first one is changed, so that a missing key changes nothing. Removes what is
// left of earlier wrapped keys, and prints what became of each step.
void change_recipients(const std::filesystem::path& folder, const KeyChoice& keys,
                       const ChangeRecipients& change);

// Overwrites every wrapped key in a step's folder, or in all folders of a checkpoint folder: steps,
// attempts to save one, and remains. Goes on after a failure, and then throws IoError that lists
// all; it can be repeated. A symbolic link is removed, and what it points to is left alone.
void destroy_keys(const std::filesystem::path& folder);

}  // namespace trireme
