// KeyRing holds the wrapping keys that a process may use, as its configuration or its command line
// names them (key_uri.h). It wraps data keys for all of them and unwraps with any of them. Used by
// one thread at a time, since a token in it has one session.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/keys/wrapped_keys.h"

namespace trireme {

class KeyRing {
 public:
  KeyRing() = default;
  // Opens every key. Throws what open_key() throws.
  explicit KeyRing(const std::vector<std::string>& uris);
  explicit KeyRing(std::vector<std::unique_ptr<WrappingKey>> keys) : keys_(std::move(keys)) {}

  bool empty() const { return keys_.empty(); }
  const std::vector<std::unique_ptr<WrappingKey>>& keys() const { return keys_; }
  // Wraps the key for all keys of the ring. contents: the seal of the manifest. The result is
  // signed.
  WrappedKeys wrap(const DataKey& key, std::string contents) const;
  // Returns the data key. Throws PolicyError, which lists the recipients, if no key of the ring is
  // among them, and DataError that names `origin` if what is wrapped for one of them was changed.
  DataKey unwrap(const WrappedKeys& keys, const std::string& origin) const;

 private:
  std::vector<std::unique_ptr<WrappingKey>> keys_;
};

// Returns the recipients in words, for messages and lists.
std::string recipients_text(const WrappedKeys& keys);

}  // namespace trireme
