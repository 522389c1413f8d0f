// DataKey is the key of one checkpoint or dataset. It encrypts nothing itself: every use has a key
// of its own, derived with HKDF-SHA256 (RFC 5869; no salt) from the data key and a text:
//
//   "trireme id"                16 bytes that identify the data key without disclosing it
//   "trireme file " + NAME      32 bytes, the key of a file (block_cipher.h)
//   "trireme mac " + PURPOSE    32 bytes, a key for HMAC-SHA256
//   "trireme next " + NUMBER    32 bytes, another data key
//
// Move-only; several threads may use it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/keys/secret.h"

namespace trireme {

class DataKey {
 public:
  static constexpr std::size_t kBytes = 32;

  static DataKey generate();
  // Precondition: bytes.bytes() is kBytes.
  explicit DataKey(Secret bytes);

  // Returns 32 hexadecimal digits.
  const std::string& id() const { return id_; }
  const Secret& bytes() const { return bytes_; }
  // Returns the key of the file with this name.
  Secret file_key(std::string_view name) const;
  // Returns HMAC-SHA256 as 64 hexadecimal digits.
  std::string mac(std::string_view purpose, std::string_view text) const;
  // Returns a key that whoever has this one can derive as well, but not the other way round.
  DataKey next(std::int64_t number) const;

 private:
  Secret bytes_;
  std::string id_;
};

// Returns `bytes` bytes of HKDF-SHA256 with an empty salt. Pure function.
Secret hkdf_sha256(std::string_view key, std::string_view info, std::size_t bytes);

// Compares two digests or MACs in a time that does not depend on where they differ.
bool same_mac(std::string_view a, std::string_view b);

}  // namespace trireme
