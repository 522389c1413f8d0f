// StepKeys opens encrypted checkpoints, and makes the keys of those that a run saves. What crosses
// the network is wrapped (io/keys/shared_keys.h).
//
//   run key          random at each start; rank 0 wraps it and sends it to the hosts' first ranks
//   key of a save    derived from the run key with the number of the save; rank 0 wraps it for
//                    keys.json
//   key of the logs  derived from the run key with the number 0 (src/keys/log_keys.h)
//
// The run key is not stored, so that the keys of two saves have nothing in common for whoever has
// one of them. The thread that owns the communicator makes all calls.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/keys/shared_keys.h"
#include "mpi/communicator.h"
#include "src/keys/folder_key.h"

namespace trireme {

struct KeyOptions {
  std::vector<std::string> uris = {};  // wrapping keys (src/keys/key_uri.h); none: no encryption
  // Also read checkpoints, or datasets, that are not encrypted, although keys are given.
  bool accept_plain = false;
  bool accept_plain_data = false;
  // Called with the manifest of each checkpoint before it is opened, on all ranks; throws what
  // keeps it from being read. May be empty.
  std::function<void(const Manifest&, const std::filesystem::path&)> admit = {};
};

class StepKeys {
 public:
  // Collective. All ranks throw alike if a key can't be opened, PolicyError if several hosts report
  // different errors.
  StepKeys(Communicator& comm, KeyOptions options);

  // Returns the wrapping keys.
  SharedKeys& shared() { return shared_; }
  const KeyOptions& options() const { return options_; }
  // Returns whether saves are encrypted.
  bool encrypts() const { return !options_.uris.empty(); }
  // Collective, with the same manifest on all ranks. Sets its key, if the step is encrypted. On
  // rank `root`, `folder` is that of the manifest. Returns on all ranks alike "", or why the step
  // is damaged. Throws PolicyError on all ranks if no key opens it, or if it is not encrypted, but
  // would have to be.
  std::string unlock(Manifest& manifest, const std::filesystem::path& folder, int root = 0);
  // Collective. Makes the run key, so that what refuses to wrap it does so now and not at the first
  // save, and a passphrase is asked for. Call it before next().
  void prepare_to_save();
  // Collective. Returns the key of the next save. All ranks throw PolicyError alike if a wrapping
  // key refuses.
  std::shared_ptr<const FolderKey> next();
  // Collective. Returns the key of the only checkpoint that a command makes, null if that is not
  // encrypted. Throws what prepare_to_save() and next() throw.
  std::shared_ptr<const FolderKey> only_key();
  // Collective. Returns the key with which this start encrypts its logs, metrics and traces. All
  // ranks throw PolicyError alike if a wrapping key refuses.
  std::shared_ptr<const FolderKey> log_key() { return derived(0); }

 private:
  std::shared_ptr<const FolderKey> derived(std::int64_t number);

  Communicator& comm_;
  KeyOptions options_;
  SharedKeys shared_;
  std::optional<DataKey> run_key_;
  std::int64_t saves_ = 0;
};

// For commands of one process: does what StepKeys::unlock() does, but throws DataError for damage.
void unlock(Manifest& manifest, const std::filesystem::path& folder, const KeyOptions& options);

}  // namespace trireme
