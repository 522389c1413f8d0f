// The note that a finished shard leaves for a restart. A value; private to io/data.
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
  std::optional<ShardEntry> shard;  // nothing: the inputs gave no token
};

std::string note_text(const ShardNote& note);
ShardNote parse_note(std::string_view text, int token_bytes);

// The note in `path`, if it is whole, has this fingerprint, and the shard that it speaks of has the
// digest that it names; else nothing.
std::optional<ShardNote> trusted_note(const std::filesystem::path& path,
                                      const std::filesystem::path& folder, int token_bytes,
                                      const std::string& fingerprint);

}  // namespace trireme
