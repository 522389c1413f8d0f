// Finds the folder for temporary files: $TMPDIR, or /tmp.
#pragma once

#include <filesystem>

namespace trireme {

// Throws NotFound if it is not a folder.
std::filesystem::path temporary_folder();

}  // namespace trireme
