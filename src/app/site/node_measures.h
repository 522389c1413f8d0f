// Measures this node for `trireme health`. Each part takes bounded time, and a part that fails
// becomes a complaint.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "slurm/health/measures.h"
#include "src/device/nvml/gpu_state.h"

namespace trireme {

struct NodeExamination {
  Measures measures;
  std::vector<std::string> complaints;
  std::vector<std::string> notes;  // what could not be examined, and why
  std::vector<GpuState> gpus;      // as the driver reports them
  std::string driver;              // its version; empty without GPUs
  std::string back_end;            // what computes on GPUs, such as "simulated CUDA device"
};

// folder: on the disk to measure. reported: called with the name of each part when it begins.
NodeExamination examine_node(const std::filesystem::path& folder,
                             const std::function<void(const char*)>& reported);

}  // namespace trireme
