// Reads keys.json beside the manifest of an encrypted step, as far as that is possible without a
// key: whether it is there, intact, and that of this manifest.
#pragma once

#include <filesystem>

#include "io/checkpoint/manifest.h"
#include "src/keys/wrapped_keys.h"

namespace trireme {

// Throws DataError if the file is missing or damaged, belongs to another manifest, or has lost its
// recipients, and PolicyError or IoError if it can't be read.
WrappedKeys read_keys_file(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace trireme
