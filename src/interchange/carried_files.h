// Carries the small files beside a model's weights, which say how text becomes tokens and how to
// generate, unchanged from a folder of Hugging Face's into a checkpoint and back.
#pragma once

#include <filesystem>

namespace trireme {

// Copies those that exist from one folder to another, and syncs them. Throws DataError for a file
// that is too large, and IoError.
void copy_carried_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace trireme
