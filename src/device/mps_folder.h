// Finds CUDA's multi-process service (MPS), through which several processes share a GPU.
#pragma once

#include <string>

namespace trireme {

// Returns the folder through which it serves this process, or "" if none runs.
std::string mps_folder();

}  // namespace trireme
