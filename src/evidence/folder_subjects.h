// Adds the files of a new folder to the subjects of the statement about it (statement.h), because a
// signed folder may hold no other files.
#pragma once

#include <filesystem>
#include <vector>

#include "src/evidence/statement.h"

namespace trireme {

// Adds all files below the folder that are not among the subjects, sorted by path, except the
// provenance and keys.json, which changes with the recipients. Reads them, with up to `threads`
// threads. Throws IoError if one of them cannot be read.
void add_other_files(const std::filesystem::path& folder, int threads,
                     std::vector<Subject>& subjects);

}  // namespace trireme
