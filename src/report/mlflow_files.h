// Writes a run as files of MLflow's file store, which its tools read and migrate:
//
//   DIR/<experiment>/meta.yaml                    the experiment
//   DIR/<experiment>/<run>/meta.yaml              name, start, end, status
//   DIR/<experiment>/<run>/metrics/<metric>       lines "<ms since 1970> <value> <step>"
//   DIR/<experiment>/<run>/params/<key>           a value of config.yaml
//   DIR/<experiment>/<run>/tags/<key>
//   DIR/<experiment>/<run>/artifacts/             empty
//
// IDs follow from names and folders, so that a second export of a run replaces the first.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "src/report/run_folder.h"

namespace trireme {

struct MlflowExport {
  std::filesystem::path folder;  // of the file store, made if it does not exist
  std::string experiment = "trireme";
  std::string state;  // of the run, as `trireme status` calls it
  std::string user;
  std::map<std::string, std::string> tags = {};  // what else is known of the run, by name of a file
};

// Returns the folder of the exported run. Throws DataError if the run has logged no step with a
// time, PolicyError if a folder of the store is a symbolic link, and IoError, NotFound or
// PolicyError if files cannot be written.
std::filesystem::path export_to_mlflow(const RunFolder& run, const MlflowExport& what);

}  // namespace trireme
