// ShardNote is the note that a finished shard leaves, so that a restarted pack can keep the shard.
// A value; private to io/data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "io/data/dataset_manifest.h"
#include "io/data/text_packing.h"

namespace trireme {

struct ShardNote {
  std::string fingerprint;
  PackCounts counts;
  std::optional<ShardEntry> shard;  // empty if the inputs gave no token
};

std::string note_text(const ShardNote& note);
ShardNote parse_note(std::string_view text, int token_bytes);

// Returns the note in `path` if it is intact, has this fingerprint, and the shard's file still has
// the digest in the note. Returns nothing otherwise.
std::optional<ShardNote> trusted_note(const std::filesystem::path& path,
                                      const std::filesystem::path& folder, int token_bytes,
                                      const std::string& fingerprint);

}  // namespace trireme
