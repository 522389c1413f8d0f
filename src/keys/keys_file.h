// Reads keys.json beside the manifest of an encrypted checkpoint or dataset, as far as that is
// possible without a key: whether it is there, intact, and that of this manifest.
#pragma once

#include <filesystem>
#include <string_view>

#include "src/keys/wrapped_keys.h"

namespace trireme {

// Describes an encrypted folder, as its manifest does.
struct SealedFolder {
  const std::filesystem::path& folder;
  std::string_view data_key;  // the identity in the manifest
  std::string_view seal;      // of the manifest
  const char* what;           // "checkpoint" or "dataset", for messages
};

// Throws DataError if the file is missing or damaged, belongs to another manifest, or has lost its
// recipients, and PolicyError or IoError if it can't be read.
WrappedKeys read_keys_file(const SealedFolder& sealed);

}  // namespace trireme
