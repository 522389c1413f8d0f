// A trust file says whose signatures count: any number of public keys in PEM. A line that begins
// with # before a key names it. A line "revoked:" before a key takes back the trust in it, for all
// of its signatures or for those that state a later time than the date. It counts for every entry
// of that key in the file:
//
//   # Site A, 2025
//   revoked: 2026-03-01T12:00:00Z replaced by the key of 2026
//   -----BEGIN PUBLIC KEY-----
//   ...
//   # laptop of Kim
//   revoked: always stolen
//   -----BEGIN PUBLIC KEY-----
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/evidence/public_key.h"

namespace trireme {

struct Revocation {
  std::string since;   // "2026-03-01T12:00:00Z"; empty: always
  std::string reason;  // may be empty
};

struct TrustedKey {
  PublicKey key;
  std::string name = {};  // as the trust file says; may be empty
  std::optional<Revocation> revoked = {};

  // Returns whether a signature with this stated time counts; "" if it states none. The signer
  // chooses the time, so whoever holds a stolen key can state an earlier one.
  bool counts_at(std::string_view time) const;
};

// Reads a trust file, or the file of one public key. Throws ConfigError if it contains a private
// key or no PEM at all, and DataError, naming `origin` and the line, if it contains anything but
// keys, names and revocations.
std::vector<TrustedKey> parse_trusted_keys(std::string_view text, const std::string& origin);
std::vector<TrustedKey> load_trusted_keys(const std::filesystem::path& path);

// Returns "Site A (key 2f6c1cb3f1f1ac1e)", or "key ..." if it has no name.
std::string name_of_key(const TrustedKey& key);
// Returns ", which was revoked (stolen)" or the like, or "" for a key that is not revoked.
std::string revocation_text(const TrustedKey& key);
// Returns the first 16 digits of the identity of a key, which people compare.
std::string short_id(const std::string& key_id);

}  // namespace trireme
