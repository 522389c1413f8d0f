// SharedKeys opens wrapped data keys for all ranks of a job. The wrapping keys are opened by the
// first rank of each host only, which shares data keys with the others through memory
// (shared_secret.h). What crosses the network is wrapped. The thread that owns the communicator
// makes all calls.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "src/keys/key_ring.h"

namespace trireme {

class SharedKeys {
 public:
  // uris: of wrapping keys (src/keys/key_uri.h); may be empty. Collective. All ranks throw alike if
  // a key can't be opened, PolicyError if several hosts report different errors.
  SharedKeys(Communicator& comm, const std::vector<std::string>& uris);

  // Returns whether no wrapping key was given.
  bool empty() const { return is_empty_; }
  // Returns the wrapping keys, on the first rank of each host; others have none.
  const KeyRing& ring() const { return ring_; }
  // Collective, with the same arguments on all ranks. Returns the data key in `text`, that of a
  // keys.json beside a manifest with this seal, on all ranks; or nothing after setting `damage` on
  // all ranks alike. Throws on all ranks PolicyError if no wrapping key opens it, and DeviceError
  // if a token has gone away.
  std::optional<DataKey> open(const std::string& text, const std::string& seal,
                              const std::string& origin, std::string& damage);
  // Collective. Rank `root` calls `read`, which returns such a text; then all ranks open it. The
  // other ranks ignore `seal`, and take that of the root.
  std::optional<DataKey> open_from(int root, const std::function<std::string()>& read,
                                   const std::string& seal, const std::string& origin,
                                   std::string& damage);

 private:
  bool is_first() const;

  Communicator& comm_;
  bool is_empty_;
  KeyRing ring_;
};

}  // namespace trireme
