// UsedDataset is what checkpoints record of a dataset that a run has opened. A plain value.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/policy/label.h"

namespace trireme {

struct UsedDataset {
  std::string key;  // "data.train", or "data.train.NAME" if there are several
  std::filesystem::path folder;
  std::string manifest_sha256;  // of the manifest with which it was opened
  std::optional<Label> label = {};
};

}  // namespace trireme
