#include "src/device/nvml/gpu_state.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "src/base/units.h"

namespace trireme {
namespace {

struct SlowdownCause {
  std::string_view word;
  std::string_view advice;
};

// The reasons for low clocks that no healthy node shows. The power cap is none of them: a GPU under
// load reaches it.
constexpr std::array kSlowdowns = {
    SlowdownCause{"hw_slowdown", "the hardware halves its clocks because of heat or power"},
    SlowdownCause{"hw_thermal_slowdown", "it is too hot: check fans, dust and the inlet air"},
    SlowdownCause{"sw_thermal_slowdown", "it is hot: check fans, dust and the inlet air"},
    SlowdownCause{"hw_power_brake_slowdown", "the power supply asks it to: check the supplies"}};

// Returns whether another GPU of the same kind has its NVLinks up. GPUs without a bridge, and those
// that are split, have all of them down.
bool lacks_nvlinks(const GpuState& gpu, const std::vector<GpuState>& node) {
  return gpu.nvlinks_up == 0 && gpu.nvlinks_down > 0 && gpu.mig.value_or(0) == 0 &&
         std::any_of(node.begin(), node.end(), [&](const GpuState& other) {
           return other.nvlinks_up > 0 && other.name == gpu.name;
         });
}

}  // namespace

std::string GpuState::text() const {
  return fmt::format("GPU {} ({}, {}, {})", index, name.empty() ? "unknown" : name,
                     uuid.empty() ? "no UUID" : uuid, bus.empty() ? "no bus id" : bus);
}

void add_load(const GpuState& under_load, GpuState& gpu) {
  for (const std::string& word : under_load.throttling) {
    if (std::find(gpu.throttling.begin(), gpu.throttling.end(), word) == gpu.throttling.end()) {
      gpu.throttling.push_back(word);
    }
  }
  gpu.sm_mhz = std::max(gpu.sm_mhz, under_load.sm_mhz);
  gpu.memory_mhz = std::max(gpu.memory_mhz, under_load.memory_mhz);
  gpu.pcie_generation = std::max(gpu.pcie_generation, under_load.pcie_generation);
  gpu.failure = gpu.failure.empty() ? under_load.failure : gpu.failure;
}

void leave_out(std::int64_t pid, GpuState& gpu) {
  for (const GpuProcess& process : gpu.processes) {
    if (process.pid == pid && gpu.used_bytes) {
      // If the driver does not say how much the process holds, what the others hold is unknown.
      gpu.used_bytes =
          process.used_bytes ? Reading(*gpu.used_bytes - *process.used_bytes) : Reading();
    }
  }
  std::erase_if(gpu.processes, [pid](const GpuProcess& process) { return process.pid == pid; });
}

std::string use_of(const GpuState& gpu) {
  // The driver itself takes less than both (0.6 of 80 GiB on an H100).
  constexpr std::int64_t kDriverBytes = std::int64_t{1} << 30;
  constexpr std::int64_t kDriverPart = 32;
  std::string text;
  for (const GpuProcess& process : gpu.processes) {
    text += fmt::format("{}process {} computes on it", text.empty() ? "" : ", and ", process.pid);
    if (process.used_bytes) {
      text += fmt::format(", with {} of its memory", format_bytes(*process.used_bytes));
    }
  }
  const std::int64_t used = gpu.used_bytes.value_or(0);
  const std::int64_t all = gpu.memory_bytes.value_or(0);
  if (text.empty() && used > std::max(kDriverBytes, all / kDriverPart)) {
    text = fmt::format("{} of its {} are in use, by no process that the driver shows here",
                       format_bytes(used), format_bytes(all));
  }
  return text;
}

std::vector<std::string> faults_of(const GpuState& gpu, const std::vector<GpuState>& node) {
  std::vector<std::string> faults;
  const auto add = [&](const std::string& what) { faults.push_back(gpu.text() + ": " + what); };
  if (!gpu.failure.empty()) {
    add(fmt::format("{}: restart the node", gpu.failure));
    return faults;
  }
  if (gpu.ecc_uncorrected.value_or(0) > 0) {
    add(
        fmt::format("uncorrectable memory errors since the driver was loaded: {}: reset the GPU "
                    "(nvidia-smi -r), and replace it if they return",
                    *gpu.ecc_uncorrected));
  }
  if (gpu.remap_has_failed) {
    add("a broken row of its memory could not be remapped: replace it");
  } else if (gpu.remap_is_pending) {
    add("a row of its memory waits to be remapped: reset the GPU (nvidia-smi -r)");
  }
  for (const SlowdownCause& cause : kSlowdowns) {
    for (const std::string& word : gpu.throttling) {
      if (word == cause.word) {
        add(fmt::format("clocks are slowed down ({}): {}", word, cause.advice));
      }
    }
  }
  if (gpu.pcie_width && gpu.most_pcie_width && *gpu.pcie_width < *gpu.most_pcie_width) {
    add(fmt::format("its PCIe link has {} of {} lanes: reseat the GPU or its riser",
                    *gpu.pcie_width, *gpu.most_pcie_width));
  }
  if (gpu.nvlinks_up > 0 && gpu.nvlinks_down > 0) {
    add(fmt::format("{} of {} NVLinks are down: check the bridge or the fabric manager",
                    gpu.nvlinks_down, gpu.nvlinks_up + gpu.nvlinks_down));
  }
  if (lacks_nvlinks(gpu, node)) {
    add(
        fmt::format("all of its {} NVLinks are down, but other GPUs of this node have theirs up: "
                    "check the bridge or the fabric manager",
                    gpu.nvlinks_down));
  }
  return faults;
}

}  // namespace trireme
