// Writes a run as files of MLflow's file store, which its tools read and migrate:
//
//   DIR/<experiment>/meta.yaml                    the experiment
//   DIR/<experiment>/<run>/meta.yaml              name, start, end, status
//   DIR/<experiment>/<run>/metrics/<metric>       lines "<ms since 1970> <value> <step>"; a "/" in
//   a
//                                                 name, as in sources/NAME/loss, makes folders
//   DIR/<experiment>/<run>/params/<key>           a value of config.yaml
//   DIR/<experiment>/<run>/tags/<key>
//   DIR/<experiment>/<run>/artifacts/             empty
//
// IDs follow from names and folders, so that a second export of a run replaces the first, also one
// into another experiment. It keeps what others have added to the run meanwhile, such as artifacts
// and notes.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "src/report/run_folder.h"

namespace trireme {

struct MlflowExport {
  std::filesystem::path folder;  // of the file store, made if it does not exist
  std::string experiment = "trireme";
  std::string state;  // of the run, as `trireme status` calls it
  std::string user;
  std::map<std::string, std::string> tags = {};  // what else is known of the run, by name of a file
};

// Returns the folder of the run in the store, after making the store and the experiment, but not
// the run. Throws DataError if the run has logged no step with a time, the error that kept
// metrics.jsonl from being read, PolicyError if a folder of the store is a symbolic link, and
// IoError, NotFound or PolicyError if files cannot be written.
std::filesystem::path mlflow_run_folder(const RunFolder& run, const MlflowExport& what);

// If the store holds the run in another experiment than that of `folder`, moves it there: MLflow
// cannot tell two runs with one ID apart. Throws ConfigError if the store holds it in both, and
// IoError or PolicyError if it cannot be moved.
void move_mlflow_run(const MlflowExport& what, const std::filesystem::path& folder);

// Writes the run, whose folder in the store is `folder`, into `draft`: the same folder, or one that
// the caller then renames. Returns the names of metrics that were left out, because MLflow does not
// take them or they would lead out of the folder. Throws like mlflow_run_folder().
std::vector<std::string> write_mlflow_run(const RunFolder& run, const MlflowExport& what,
                                          const std::filesystem::path& folder,
                                          const std::filesystem::path& draft);

}  // namespace trireme
