// A WrappingKey is a key that a site keeps for years: in a file, in a hardware token, or as a
// passphrase. It encrypts ("wraps") data keys; the result, a Recipient, is stored beside what the
// data key encrypts. key_uri.h lists the implementations.
#pragma once

#include <optional>
#include <string>

#include "src/base/json_value.h"
#include "src/keys/data_key.h"

namespace trireme {

// A data key, wrapped for one wrapping key. A value.
struct Recipient {
  std::string kind;           // such as "file" or "pkcs11"
  std::string key;            // identifies the wrapping key among those of its kind
  std::string name;           // what people call it; may be empty, and is only a hint
  std::string wrapped;        // bytes
  JsonValue parameters = {};  // what this kind needs besides, such as the salt of a passphrase
};

class WrappingKey {
 public:
  WrappingKey() = default;
  WrappingKey(const WrappingKey&) = delete;
  WrappingKey& operator=(const WrappingKey&) = delete;
  virtual ~WrappingKey() = default;

  // Throws PolicyError if whatever holds the key refuses (a locked token), and DeviceError if it
  // has gone away.
  virtual Recipient wrap(const DataKey& key) = 0;
  // Returns nothing if the recipient is another key. Throws DataError if it is this one, but
  // `wrapped` was changed or holds another data key, and what wrap() throws.
  virtual std::optional<DataKey> unwrap(const Recipient& recipient,
                                        std::string_view data_key_id) = 0;
  // Returns how messages name it: its kind, its place and its identity.
  virtual std::string title() const = 0;
};

// Wraps a data key with a symmetric key of 32 bytes: AES-256-GCM with a random nonce. Returns
// nonce (12 bytes), encrypted key (32), tag (16).
std::string wrap_with(const Secret& wrapping, const DataKey& key);
// Returns the additional data: "trireme recipient " and the data key's id.
std::string recipient_context(std::string_view data_key_id);
// Returns nothing if `wrapped` was changed, or is of another key.
std::optional<DataKey> unwrap_with(const Secret& wrapping, std::string_view wrapped,
                                   std::string_view data_key_id);

}  // namespace trireme
