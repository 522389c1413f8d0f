// Measures this node for `trireme health`: each part in bounded time, a part that fails becomes a
// complaint.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "slurm/health/measures.h"

namespace trireme {

struct NodeExamination {
  Measures measures;
  std::vector<std::string> complaints;
};

// folder: on the disk to measure. told: what is being measured from here on, for who waits.
NodeExamination examine_node(const std::filesystem::path& folder,
                             const std::function<void(const char*)>& told);

}  // namespace trireme
