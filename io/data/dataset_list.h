// Finding datasets below a folder, without reading their tokens.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/data/dataset_manifest.h"

namespace trireme {

struct FoundDataset {
  std::filesystem::path folder;
  std::optional<DatasetManifest> manifest;  // none: not usable, see `problem`
  std::string problem;                      // also where a pack or conversion has not finished
};

// The folder itself, or all datasets below it, sorted by path: what has a manifest of a dataset and
// shards of the right sizes, what should have and does not, and what is unfinished. Symbolic links
// and hidden folders are passed by, as is what may not be read. NotFound where there is no folder.
std::vector<FoundDataset> list_datasets(const std::filesystem::path& folder);

}  // namespace trireme
