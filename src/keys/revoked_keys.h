// Wrapping keys that are revoked. Each has a line in a file `revoked-keys`, of the host
// (/etc/trireme) or of the folder that TRIREME_SITE_DIR names, with its identity as `trireme keys
// list` prints it, and a reason:
//
//   # The old cluster
//   9b23c1a602ba17944091e8a0c0536d77 copied to a laptop on 2026-03-01
//
// A revoked key neither encrypts nor opens anything (key_ring.h), except where a command changes
// recipients, so that others can take its place. The file is read again for each use.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/host_site.h"
#include "src/keys/key_ring.h"

namespace trireme {

inline constexpr const char* kRevokedKeysName = "revoked-keys";

struct RevokedKey {
  std::string key;     // the identity
  std::string reason;  // may be empty
};

// Throws PolicyError that names `origin` and the line for a line without an identity, or with one
// that no `keys list` prints, since a misspelt line would revoke nothing.
std::vector<RevokedKey> parse_revoked_keys(std::string_view text, const std::string& origin);
// Returns those of this host and of this site: naming another site takes none back. A file that
// does not exist revokes none. Throws PolicyError also if one cannot be read, because then nobody
// knows what it revokes.
std::vector<RevokedKey> site_revoked_keys(
    const std::filesystem::path& host_folder = kHostSiteFolder);
// Returns null if the key is not revoked.
const RevokedKey* find_revoked(const std::vector<RevokedKey>& revoked, const std::string& key);
// Returns "is revoked (stolen)", or "is revoked".
std::string text_of_revoked(const RevokedKey& key);

// Does what KeyRing::unwrap() does, and opens with revoked keys as well.
DataKey unwrap_to_change(const KeyRing& ring, const WrappedKeys& keys, const std::string& origin);

}  // namespace trireme
