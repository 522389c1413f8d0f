// KeyringKey is a wrapping key in the keyring of the Linux kernel (keyrings(7)): a key of the type
// "user" with 32 bytes. It is searched for in the session keyring, then in the user keyring, and
// copied into this process. held_key.h says how it is identified and used.
#pragma once

#include <memory>

#include "src/keys/held_key.h"

namespace trireme {

class KeyringKey final : public HeldKey {
 public:
  // Throws NotFound if there is no such key, PolicyError if the system refuses it (it was revoked
  // or has expired, or keyrings are forbidden here), and DataError if it does not have 32 bytes.
  static std::unique_ptr<KeyringKey> load(const std::string& description);

  std::string title() const override;

 private:
  KeyringKey(std::string description, DataKey key)
      : HeldKey(kKeyringKind, std::move(description), std::move(key)) {}
};

}  // namespace trireme
