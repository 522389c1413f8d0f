#include "src/train/start/driver_words.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/core.h>
#include <unistd.h>

#include "src/base/units.h"
#include "src/device/cuda_device.h"
#include "src/device/nvml/gpu_monitor.h"

namespace trireme {
namespace {

// A driver needs a moment to free the memory of a process that was killed.
constexpr std::chrono::seconds kGoneWithin{3};
constexpr std::chrono::milliseconds kBetweenLooks{100};

std::string use_of(const GpuMonitor& monitor, const std::string& uuid) {
  for (GpuState& gpu : monitor.gpus()) {
    if (gpu.uuid == uuid) {
      leave_out(::getpid(), gpu);
      return use_of(gpu);
    }
  }
  return "";
}

}  // namespace

std::string users_of_gpu(const std::string& uuid) {
  const auto monitor = GpuMonitor::open(cuda::management_library());
  if (monitor == nullptr) {
    return "";
  }
  const auto end = std::chrono::steady_clock::now() + kGoneWithin;
  std::string use = use_of(*monitor, uuid);
  while (!use.empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBetweenLooks);
    use = use_of(*monitor, uuid);
  }
  return use;
}

std::string refusal_of_gpu(const std::string& uuid) {
  const auto monitor = GpuMonitor::open(cuda::management_library());
  const std::vector<GpuState> gpus = monitor == nullptr ? std::vector<GpuState>() : monitor->gpus();
  const bool is_prohibited = std::any_of(gpus.begin(), gpus.end(), [&](const GpuState& gpu) {
    return gpu.uuid == uuid && gpu.is_prohibited;
  });
  return is_prohibited ? "its compute mode prohibits computing: nvidia-smi -c 0 allows it" : "";
}

std::string gpus_of_host() {
  const auto monitor = GpuMonitor::open(cuda::management_library());
  return monitor == nullptr
             ? ""
             : fmt::format("the driver reports {} on this host",
                           counted(static_cast<std::int64_t>(monitor->gpus().size()), "GPU"));
}

}  // namespace trireme
