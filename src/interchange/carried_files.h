// Carries the small files beside a model's weights, which say how text becomes tokens and how to
// generate, unchanged from a folder of Hugging Face's into a checkpoint and back. The copies can be
// read by everybody, so that a link in a model of somebody else must not choose what is copied.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/checkpoint/store.h"

namespace trireme {

// Returns those that exist in a folder.
std::vector<std::filesystem::path> carried_files_in(const std::filesystem::path& folder);
// Copies those that exist from one folder to another, and syncs them. Throws DataError for a file
// that is too large or no regular file, and for a symbolic link that leads out of the folder,
// unless both are in one cache of Hugging Face, where snapshots/REVISION/FILE leads to
// blobs/DIGEST. Throws IoError. Returns whether there were any.
bool copy_carried_files(const std::filesystem::path& from, const std::filesystem::path& to);
// Copies those of the weights in a step: from its own folder, or if that has none, from the
// imported model with which its run began; if it began with new weights, from the dataset that it
// learned from. Returns a warning if these are gone, else "".
std::string copy_carried_files(const StepFolder& step, const std::filesystem::path& to);

}  // namespace trireme
