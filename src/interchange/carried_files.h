// Carries the small files beside a model's weights, which say how text becomes tokens and how to
// generate, unchanged from a folder of Hugging Face's into a checkpoint and back. The copies can be
// read by everybody, so that a link in a model of somebody else must not choose what is copied.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/interchange/training_tokenizer.h"

namespace trireme {

inline constexpr const char* kGenerationConfigName = "generation_config.json";

// Returns those that exist in a folder.
std::vector<std::filesystem::path> carried_files_in(const std::filesystem::path& folder);
// Copies those that exist from one folder to another, and syncs them. Throws DataError for a file
// that is too large or no regular file, and for a symbolic link that leads out of the folder,
// unless both are in one cache of Hugging Face, where snapshots/REVISION/FILE leads to
// blobs/DIGEST. Throws IoError. Returns whether there were any.
bool copy_carried_files(const std::filesystem::path& from, const std::filesystem::path& to);
// Copies those of a model.
void copy_carried_files(const ModelTokenizer& tokenizer, const std::filesystem::path& to);

}  // namespace trireme
