// Converts a shard's entry to and from JSON, for the manifest and for the note that a finished
// shard leaves. Pure functions; private to io/data.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "io/data/dataset_manifest.h"

namespace trireme {

nlohmann::ordered_json shard_entry_json(const ShardEntry& shard);
// Throws DataError unless the entry passes every check that does not need the file: sizes,
// overlaps, and a path inside the folder.
ShardEntry parse_shard_entry(const nlohmann::json& object, int token_bytes);

}  // namespace trireme
