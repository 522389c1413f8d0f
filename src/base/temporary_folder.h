// The folder for temporary files: $TMPDIR, or /tmp.
#pragma once

#include <filesystem>

namespace trireme {

// NotFound if it is no folder.
std::filesystem::path temporary_folder();

}  // namespace trireme
