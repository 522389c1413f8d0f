// Names the files of folders as materials of a statement (statement.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/evidence/statement.h"

namespace trireme {

// Returns the absolute path without a slash at its end, as statements name folders.
std::string stated_path(const std::filesystem::path& path);
// Returns the URI of a file or folder.
std::string stated_uri(const std::filesystem::path& path);

// Returns the material for the manifest of a checkpoint or dataset, of which the digest is known.
Material manifest_material(const std::string& name, const std::filesystem::path& folder,
                           const std::string& manifest_sha256);
// Returns the same and, if the folder has provenance now, the material for that, so that its
// absence is seen later. The digest of the provenance is empty if it cannot be read.
std::vector<Material> folder_materials(const std::string& name, const std::filesystem::path& folder,
                                       const std::string& manifest_sha256);

}  // namespace trireme
