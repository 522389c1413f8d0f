// Checks where a run's folder lies.
#pragma once

#include <filesystem>

namespace trireme {

// Throws ConfigError if the folder `run_dir` is or lies in a checkpoint or a dataset: retention and
// commands remove these with everything in them.
void check_place_of_run(const std::filesystem::path& run_dir);

}  // namespace trireme
