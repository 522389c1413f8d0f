// Reads keys.json of an encrypted step (src/keys/keys_file.h).
#pragma once

#include <filesystem>

#include "io/checkpoint/manifest.h"
#include "src/keys/keys_file.h"

namespace trireme {

// Throws what read_keys_file() throws.
inline WrappedKeys read_step_keys(const std::filesystem::path& folder, const Manifest& manifest) {
  return read_keys_file({folder, manifest.data_key, manifest.seal, "checkpoint"});
}

}  // namespace trireme
