// Shared by the tests of encrypted checkpoints and datasets.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "src/base/file.h"
#include "src/keys/key_file.h"

namespace trireme {

// Makes a key file folder/NAME.key and returns its URI.
inline std::string new_key(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path path = folder / (name + ".key");
  KeyFile::create(path, name);
  return "file:" + path.string();
}

// Returns whether any file below the folder contains these bytes.
inline bool contains_bytes(const std::filesystem::path& folder, std::string_view bytes) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && read_file(entry.path()).find(bytes) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace trireme
