// Finds the datasets below a folder without reading their tokens.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/data/dataset_manifest.h"

namespace trireme {

struct FoundDataset {
  std::filesystem::path folder;
  std::optional<DatasetManifest> manifest;  // empty if the dataset is not usable; see `problem`
  std::string problem;  // why it is not usable; may be an unfinished pack or conversion
};

// Returns the folder itself if it is a dataset, else all datasets below it, sorted by path. Damaged
// and unfinished datasets, and folders that can't be read, are listed with their problem. Skips
// symbolic links and hidden folders. Throws NotFound if the folder does not exist.
std::vector<FoundDataset> list_datasets(const std::filesystem::path& folder);

}  // namespace trireme
