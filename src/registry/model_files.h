// What a registry knows of a model's files: a digest by which it notices that they have changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/registry/registry_record.h"

namespace trireme {

// Fills kind, path, sha256, step and label for a folder: that of a step, of checkpoints (of which
// the newest intact one counts), or of an exported model. All files are read. Sets `skipped` to the
// faults of newer steps. Throws NotFound if the folder is missing or holds nothing that `trireme
// export` writes, DataError if it is a damaged checkpoint or holds anything but files and folders,
// PolicyError if it cannot be read.
VersionRecord describe_model(const std::filesystem::path& folder,
                             std::vector<std::string>& skipped);

// How much of a checkpoint is read: its manifest, and that all shards have their size; or every
// byte, which is compared with the digests in the manifest. Exported models are always read whole.
enum class ModelCheck : std::uint8_t { sizes, contents };

// Throws NotFound if the files of a version are gone, and DataError if they have changed.
void check_model(const VersionRecord& record, ModelCheck depth);

}  // namespace trireme
