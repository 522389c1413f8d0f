// HeldKey is a wrapping key whose 32 bytes this process holds in memory. Its identity is that of
// DataKey: HKDF-SHA256 of the bytes with the info "trireme id". It unwraps for the same bytes
// wherever they came from, so that a key may move from a file into the kernel's keyring and back.
#pragma once

#include "src/keys/wrapping_key.h"

namespace trireme {

inline constexpr std::string_view kFileKind = "file";
inline constexpr std::string_view kKeyringKind = "keyring";

class HeldKey : public WrappingKey {
 public:
  const std::string& id() const { return key_.id(); }
  // Returns what people call it.
  const std::string& name() const { return name_; }

  Recipient wrap(const DataKey& key) override;
  std::optional<DataKey> unwrap(const Recipient& recipient, std::string_view data_key_id) override;

 protected:
  HeldKey(std::string_view kind, std::string name, DataKey key)
      : kind_(kind), name_(std::move(name)), key_(std::move(key)) {}

 private:
  std::string kind_;
  std::string name_;
  DataKey key_;
};

}  // namespace trireme
