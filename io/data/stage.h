// Copies a dataset to a node's own disk, once per node for all its ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace trireme {

struct StageReport {
  std::int64_t bytes = 0;
  bool was_there = false;  // the folder already held this dataset
  std::string warning;     // why its provenance was not copied; or empty
};

// Copies the dataset `from` to the folder `to`, which appears complete or not at all. The digest of
// every block is checked on the way. An encrypted dataset is copied as it is, with its wrapped key;
// that needs no key. Several processes may call it for the same `to`: one copies while the others
// wait (a lock beside `to`). Throws IoError if there is not enough space, and PolicyError if `to`
// holds anything else. `progress` is called with the bytes copied so far and their total; it may be
// empty.
StageReport stage(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace trireme
