// FolderKey is the data key of one encrypted folder, a checkpoint or a dataset: the same on all
// ranks, with what it is wrapped to. Immutable, so that any thread may use it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/keys/wrapped_keys.h"

namespace trireme {

struct FolderKey {
  DataKey key;
  std::vector<Recipient> recipients;
};

// Returns the text of keys.json beside a manifest with this seal.
std::string keys_text(const FolderKey& key, std::string_view seal);

// Returns the data key, or null if there is none.
inline const DataKey* data_key(const std::shared_ptr<const FolderKey>& key) {
  return key == nullptr ? nullptr : &key->key;
}

}  // namespace trireme
