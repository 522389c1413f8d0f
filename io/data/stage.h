// Staging: a copy of a dataset on a node's own disk, made once a node and used by all its ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace trireme {

struct StageReport {
  std::int64_t bytes = 0;
  bool was_there = false;  // the same dataset stood there already
};

// Copies the dataset `from` to the folder `to`, which appears whole or not at all. Every block is
// compared with its digest on the way. Any number of processes may call it for the same `to`: one
// copies, the others wait for it (a lock beside `to`). IoError when it does not fit; PolicyError
// when `to` holds anything else. `progress`: bytes done, of all. May be empty.
StageReport stage(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace trireme
