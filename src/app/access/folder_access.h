// Asks the policy of the site about datasets and checkpoints in folders. Every command that reads,
// writes, exports or erases some calls one of these before it reads their data. Without a policy
// they do nothing.
#pragma once

#include <filesystem>
#include <optional>

#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset_manifest.h"
#include "src/policy/access.h"

namespace trireme {

// These throw PolicyError if the policy forbids the action.
void check_access(const Access& access, Deed deed, const std::filesystem::path& folder,
                  const DatasetManifest& manifest);
// A step that is not whole has no label, so that it may only be written: erased.
void check_access(const Access& access, Deed deed, const StepFolder& step);

// Checks the access to a folder's data: the folder may be a dataset or a step, hold some of them
// directly, or be a run's folder, whose steps are checked. Manifests that cannot be read count as
// those of data with an unknown label, if the deed needs none of the contents (Deed::write, to
// erase; Deed::keys). Does nothing for other folders, which the command itself refuses. Throws
// PolicyError as well if a folder's manifest and shards do not say alike whether it is a dataset or
// a checkpoint, of which each has rules of its own.
void check_folder_access(const Access& access, Deed deed, const std::filesystem::path& folder);
// Does the same for a dataset, whose manifest it reads.
void check_dataset_access(const Access& access, Deed deed, const std::filesystem::path& folder);
// Throws PolicyError if a dataset or checkpoint with this label may not be written to the folder.
void check_output_access(const Access& access, Thing thing, const std::filesystem::path& folder,
                         const std::optional<Label>& label);

// Does the same for encrypted logs in a folder, which count as a checkpoint with the label of the
// start that has encrypted them (LogStart in src/keys/log_starts.h). Logs without a label that the
// policy does not refuse for that are judged by the steps in the folder, too. Throws DataError if
// the label is none.
void check_logs_access(const Access& access, Deed deed, const std::filesystem::path& folder,
                       const std::string& label);

// Returns the options with a check of each checkpoint that they open. `access` outlives them.
KeyOptions with_access(KeyOptions options, const Access& access);

}  // namespace trireme
