// A shard's entry as JSON: in the manifest, and in the note that a packer leaves for a restart.
// Pure functions; private to io/data.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "io/data/dataset_manifest.h"

namespace trireme {

nlohmann::ordered_json shard_entry_json(const ShardEntry& shard);
// Checks all that can be checked without the file: sizes, overlaps, a path that stays in the
// folder. DataError otherwise.
ShardEntry parse_shard_entry(const nlohmann::json& object, int token_bytes);

}  // namespace trireme
