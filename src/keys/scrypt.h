// Derives a key from a passphrase with scrypt (RFC 7914). Its parameters stand beside what the key
// wraps, as JSON:
//
//   {"kdf": "scrypt", "log2_n": 17, "r": 8, "p": 1, "salt": "<base64 of 16 to 64 bytes>"}
//
// The defaults take 128 MiB of memory and about half a second, once per process. Parameters come
// from files that others may have written: those that would take more than 1 GiB, or several times
// as long as that needs, are refused before anything is computed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/json_value.h"
#include "src/keys/secret.h"

namespace trireme {

inline constexpr std::string_view kScrypt = "scrypt";

struct ScryptParameters {
  int log2_n = 17;
  int r = 8;
  int p = 1;
  std::string salt;  // bytes

  // Returns the default parameters with a random salt of 16 bytes.
  static ScryptParameters fresh();
  friend bool operator==(const ScryptParameters&, const ScryptParameters&) = default;
};

JsonValue to_json(const ScryptParameters& parameters);
// Throws DataError for fields that are missing or out of bounds.
ScryptParameters parse_scrypt(const JsonValue& object);

// Returns 32 bytes. Precondition: parse_scrypt() accepts the parameters. Throws ResourceError for
// lack of memory.
Secret scrypt(std::string_view passphrase, const ScryptParameters& parameters);

}  // namespace trireme
