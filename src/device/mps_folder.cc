#include "src/device/mps_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace trireme {

std::string mps_folder() {
  const char* const named = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const std::filesystem::path folder = named == nullptr ? "/tmp/nvidia-mps" : named;
  std::error_code ignored;
  return std::filesystem::exists(folder / "control", ignored) ? folder.string() : "";
}

}  // namespace trireme
