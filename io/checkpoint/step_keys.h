// StepKeys opens encrypted checkpoints, and makes the keys of those that a run saves. The wrapping
// keys are opened by the first rank of each host only, which shares data keys with the others
// through memory (shared_secret.h). What crosses the network is wrapped.
//
//   run key          random at each start; rank 0 wraps it and sends it to the hosts' first ranks
//   key of a save    derived from the run key with the number of the save; rank 0 wraps it for
//                    keys.json
//
// The run key is not stored, so that the keys of two saves have nothing in common for whoever has
// one of them. The thread that owns the communicator makes all calls.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/save_key.h"
#include "mpi/communicator.h"
#include "src/keys/key_ring.h"

namespace trireme {

struct KeyOptions {
  std::vector<std::string> uris = {};  // wrapping keys (src/keys/key_uri.h); none: no encryption
  bool accept_plain =
      false;  // also read checkpoints that are not encrypted, although keys are given
};

class StepKeys {
 public:
  // Collective. All ranks throw alike if a key can't be opened, PolicyError if several hosts report
  // different errors.
  StepKeys(Communicator& comm, KeyOptions options);

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
  std::shared_ptr<const SaveKey> next();

 private:
  std::optional<DataKey> open_wrapped(const std::string& text, const std::string& seal,
                                      const std::string& origin, std::string& damage);
  bool is_first() const;

  Communicator& comm_;
  KeyOptions options_;
  KeyRing ring_;  // empty on ranks that are not the first of their host
  std::optional<DataKey> run_key_;
  std::int64_t saves_ = 0;
};

// For commands of one process: does what StepKeys::unlock() does, but throws DataError for damage.
void unlock(Manifest& manifest, const std::filesystem::path& folder, const KeyOptions& options);

}  // namespace trireme
