// WrappedKeys is the file `keys.json` in the folder of an encrypted checkpoint or dataset: its data
// key, wrapped for each recipient, and what binds the key to the contents of the folder. Changing
// the recipients rewrites this file only.
//
//   {
//    "version": 1,
//    "format": "trireme-keys",
//    "data_key": "<32 digits, the identity of the data key>",
//    "contents": "sha256:<64 digits, the seal of the folder's manifest>",
//    "recipients": [{"kind": "file", "key": "<identity>", "name": "...", "wrapped": "<base64>",
//                    "parameters": {...}}, ...],
//    "mac": "<64 digits, HMAC-SHA256 of the text below with the data key's MAC key for `keys`>",
//    "seal": "sha256:<64 digits>"                                         (src/base/sealed_json.h)
//   }
//
// The text is "DATA_KEY CONTENTS\n" and then, for each recipient, "KIND KEY WRAPPED NAME
// PARAMETERS\n", where the last three are base64, PARAMETERS of the object as JSON with sorted
// names and without blanks. Without the data key, nobody can name other contents or change a
// recipient.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/keys_name.h"
#include "src/keys/wrapping_key.h"

namespace trireme {

struct WrappedKeys {
  std::string data_key;
  std::string contents;
  std::vector<Recipient> recipients;
  std::string mac;  // set by sign()

  // Returns the MAC that these contents have with the data key.
  std::string expected_mac(const DataKey& key) const;
  void sign(const DataKey& key) { mac = expected_mac(key); }
};

// Throws ConfigError if more recipients are passphrases than readers try (passphrase_key.h).
void check_passphrases(const WrappedKeys& keys);
std::string to_text(const WrappedKeys& keys);
// Throws DataError that names `origin`.
WrappedKeys parse_wrapped_keys(std::string_view text, const std::string& origin);
// Throws DataError that names `origin` unless the data key vouches for the recipients and for
// contents with this seal.
void check_wrapped_keys(const WrappedKeys& keys, const DataKey& key, std::string_view seal,
                        const std::string& origin);

}  // namespace trireme
