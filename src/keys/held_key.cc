#include "src/keys/held_key.h"

#include "src/base/error.h"

namespace trireme {

Recipient HeldKey::wrap(const DataKey& key) {
  return {kind_, id(), name_, wrap_with(key_.bytes(), key), {}};
}

std::optional<DataKey> HeldKey::unwrap(const Recipient& recipient, std::string_view data_key_id) {
  const bool is_held = recipient.kind == kFileKind || recipient.kind == kKeyringKind;
  if (!is_held || recipient.key != id()) {
    return std::nullopt;
  }
  std::optional<DataKey> key = unwrap_with(key_.bytes(), recipient.wrapped, data_key_id);
  if (!key) {
    throw DataError(fmt::format("what is wrapped for {} was changed", title()));
  }
  return key;
}

}  // namespace trireme
