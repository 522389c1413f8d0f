// SaveKey is the data key of one save, the same on all ranks, and what it is wrapped to. Immutable,
// so that any thread may use it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/keys/wrapped_keys.h"

namespace trireme {

struct SaveKey {
  DataKey key;
  std::vector<Recipient> recipients;
};

// Returns the text of keys.json beside a manifest with this seal.
std::string keys_text(const SaveKey& key, std::string_view seal);

// Returns the data key, or null if there is none.
inline const DataKey* data_key(const std::shared_ptr<const SaveKey>& key) {
  return key == nullptr ? nullptr : &key->key;
}

}  // namespace trireme
