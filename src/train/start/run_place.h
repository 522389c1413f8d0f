// Checks where runs, datasets and commands put their files: retention and commands remove
// checkpoints and datasets with everything in them, and a result must replace no file of a run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "src/train/run/run_config.h"

namespace trireme {

// Throws ConfigError if run.dir or checkpoint.dir is or lies in a checkpoint or a dataset, or if
// the file for metrics.openmetrics lies in one.
void check_place_of_run(const RunConfig& config);

// Throws ConfigError if a new dataset's folder lies in a checkpoint, in a folder with checkpoints
// or in another dataset. It may be a dataset itself, which is then completed or refused. option:
// that names it, for the message.
void check_place_of_dataset(std::string_view option, const std::filesystem::path& folder);

// Returns why a command may not write its result to this file, such as "lies in data/train, which
// is a dataset", or "": because the file lies in a dataset or in a checkpoint, or because it
// has the name of one that a run, a folder of checkpoints, a scaling study or an acceptance writes
// there.
std::string problem_with_place_of_result(const std::filesystem::path& file);

// Return why a command may not keep a scaling study, or the files of an acceptance, in this folder,
// which need not exist, such as "is a dataset", or "": because it is or lies in a dataset, a
// checkpoint or a folder of checkpoints, because it is the folder of a run or one that a run
// writes, or because it is that of an acceptance, or of a study.
std::string problem_with_place_of_study(const std::filesystem::path& folder);
std::string problem_with_place_of_acceptance(const std::filesystem::path& folder);

}  // namespace trireme
