// What a registry knows of a model's files: a digest by which it notices that they have changed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/registry/registry_record.h"

namespace trireme {

// Fills kind, path, sha256, step and label for a folder: that of a step, of checkpoints (of which
// the newest intact one counts), or of an exported model. All files are read. Sets `skipped` to the
// faults of newer steps. Throws NotFound if the folder is missing or holds nothing, DataError if it
// is a damaged checkpoint or holds anything but files and folders, PolicyError if it cannot be
// read.
VersionRecord describe_model(const std::filesystem::path& folder,
                             std::vector<std::string>& skipped);

// Throws NotFound if the files of a version are gone, and DataError if they have changed. Of a
// checkpoint, the manifest is read, and that all shards have their size; `trireme verify` compares
// their digests.
void check_model(const VersionRecord& record);

}  // namespace trireme
