// Checks where a run and a dataset put their files: retention and commands remove checkpoints and
// datasets with everything in them.
#pragma once

#include <filesystem>

#include "src/train/run/run_config.h"

namespace trireme {

// Throws ConfigError if run.dir or checkpoint.dir is or lies in a checkpoint or a dataset.
void check_place_of_run(const RunConfig& config);

// Throws ConfigError if a new dataset's folder lies in a checkpoint, in a folder with checkpoints
// or in another dataset. It may be a dataset itself, which is then completed or refused.
void check_place_of_dataset(const std::filesystem::path& folder);

}  // namespace trireme
