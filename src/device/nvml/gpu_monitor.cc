#include "src/device/nvml/gpu_monitor.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/core.h>

#include "src/device/nvml/nvml_library.h"

namespace trireme {
namespace {

// Calls a function that stores its result through its last argument, and returns the result, or
// nothing if the function is missing or fails.
template <class Value, class Function, class... Arguments>
Reading read(Function function, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(arguments..., &value) != NVML_SUCCESS) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

template <std::size_t bytes, class Function>
std::string read_text(Function function, nvmlDevice_t device) {
  std::array<char, bytes> text{};
  const bool is_read =
      function != nullptr && function(device, text.data(), bytes - 1) == NVML_SUCCESS;
  return is_read ? text.data() : "";
}

// Returns the PCI address as CUDA and the kernel write it.
std::string bus_of(const NvmlCalls& calls, nvmlDevice_t device) {
  nvmlPciInfo_t info{};
  if (calls.pci_info == nullptr || calls.pci_info(device, &info) != NVML_SUCCESS) {
    return "";
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
}

std::vector<std::string> reasons_of(unsigned long long bits) {
  constexpr std::array kReasons = {
      std::pair{nvmlClocksEventReasonSwPowerCap, "sw_power_cap"},
      std::pair{nvmlClocksThrottleReasonHwSlowdown, "hw_slowdown"},
      std::pair{nvmlClocksEventReasonSwThermalSlowdown, "sw_thermal_slowdown"},
      std::pair{nvmlClocksThrottleReasonHwThermalSlowdown, "hw_thermal_slowdown"},
      std::pair{nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "hw_power_brake_slowdown"}};
  std::vector<std::string> words;
  for (const auto& [bit, word] : kReasons) {
    if ((bits & static_cast<unsigned long long>(bit)) != 0) {
      words.emplace_back(word);
    }
  }
  return words;
}

void read_memory(const NvmlCalls& calls, nvmlDevice_t device, GpuState& gpu) {
  nvmlMemory_t memory{};
  if (calls.memory != nullptr && calls.memory(device, &memory) == NVML_SUCCESS) {
    gpu.memory_bytes = static_cast<std::int64_t>(memory.total);
    gpu.used_bytes = static_cast<std::int64_t>(memory.used);
  }
  gpu.ecc_corrected = read<unsigned long long>(calls.ecc_errors, device,
                                               NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_VOLATILE_ECC);
  gpu.ecc_uncorrected = read<unsigned long long>(
      calls.ecc_errors, device, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC);
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned pending = 0;
  unsigned failed = 0;
  if (calls.remapped_rows != nullptr &&
      calls.remapped_rows(device, &corrected, &uncorrected, &pending, &failed) == NVML_SUCCESS) {
    gpu.rows_remapped = uncorrected;
    gpu.remap_is_pending = pending != 0;
    gpu.remap_has_failed = failed != 0;
  }
}

void read_speeds(const NvmlCalls& calls, nvmlDevice_t device, GpuState& gpu) {
  gpu.sm_mhz = read<unsigned>(calls.clock, device, NVML_CLOCK_SM);
  gpu.most_sm_mhz = read<unsigned>(calls.most_clock, device, NVML_CLOCK_SM);
  gpu.memory_mhz = read<unsigned>(calls.clock, device, NVML_CLOCK_MEM);
  gpu.most_memory_mhz = read<unsigned>(calls.most_clock, device, NVML_CLOCK_MEM);
  gpu.throttling = reasons_of(static_cast<unsigned long long>(
      read<unsigned long long>(calls.clock_reasons, device).value_or(0)));
  gpu.pcie_generation = read<unsigned>(calls.pcie_generation, device);
  gpu.most_pcie_generation = read<unsigned>(calls.most_pcie_generation, device);
  gpu.pcie_width = read<unsigned>(calls.pcie_width, device);
  gpu.most_pcie_width = read<unsigned>(calls.most_pcie_width, device);
  gpu.pcie_replays = read<unsigned>(calls.pcie_replays, device);
}

void read_nvlinks(const NvmlCalls& calls, nvmlDevice_t device, GpuState& gpu) {
  for (unsigned link = 0; link < NVML_NVLINK_MAX_LINKS; ++link) {
    const Reading up = read<nvmlEnableState_t>(calls.nvlink_state, device, link);
    if (!up) {
      continue;  // no such link
    }
    ++(*up == NVML_FEATURE_ENABLED ? gpu.nvlinks_up : gpu.nvlinks_down);
    for (const auto counter : {NVML_NVLINK_ERROR_DL_REPLAY, NVML_NVLINK_ERROR_DL_RECOVERY,
                               NVML_NVLINK_ERROR_DL_CRC_FLIT}) {
      if (const Reading errors =
              read<unsigned long long>(calls.nvlink_errors, device, link, counter)) {
        gpu.nvlink_errors = gpu.nvlink_errors.value_or(0) + *errors;
      }
    }
  }
}

void read_use(const NvmlCalls& calls, nvmlDevice_t device, GpuState& gpu) {
  gpu.persistence = read<nvmlEnableState_t>(calls.persistence, device);
  unsigned current = 0;
  unsigned pending = 0;
  if (calls.mig_mode != nullptr && calls.mig_mode(device, &current, &pending) == NVML_SUCCESS) {
    gpu.mig = current;
  }
  const Reading mode = read<nvmlComputeMode_t>(calls.compute_mode, device);
  gpu.is_exclusive = mode == NVML_COMPUTEMODE_EXCLUSIVE_PROCESS;
  gpu.is_prohibited = mode == NVML_COMPUTEMODE_PROHIBITED;
  std::array<nvmlProcessInfo_t, 64> processes{};
  auto count = static_cast<unsigned>(processes.size());
  if (calls.processes != nullptr &&
      calls.processes(device, &count, processes.data()) == NVML_SUCCESS) {
    for (unsigned i = 0; i < std::min<std::size_t>(count, processes.size()); ++i) {
      constexpr auto kUnknown = ~0ULL;  // NVML_VALUE_NOT_AVAILABLE
      const nvmlProcessInfo_t& process = processes.at(i);
      gpu.processes.push_back({process.pid, process.usedGpuMemory == kUnknown
                                                ? Reading()
                                                : Reading(process.usedGpuMemory)});
    }
  }
}

nvmlDevice_t device_with(const NvmlCalls& calls, const std::string& uuid) {
  unsigned count = 0;
  if (calls.count == nullptr || calls.handle == nullptr || calls.count(&count) != NVML_SUCCESS) {
    return nullptr;
  }
  for (unsigned index = 0; index < count; ++index) {
    nvmlDevice_t device = nullptr;
    if (calls.handle(index, &device) == NVML_SUCCESS &&
        read_text<NVML_DEVICE_UUID_V2_BUFFER_SIZE>(calls.uuid, device) == uuid) {
      return device;
    }
  }
  return nullptr;
}

}  // namespace

struct GpuMonitor::Events {
  const NvmlCalls& calls;
  nvmlEventSet_t set = nullptr;
  nvmlDevice_t device = nullptr;
  ~Events() {
    if (set != nullptr) {
      (void)calls.free_events(set);
    }
  }
};

GpuMonitor::GpuMonitor(std::unique_ptr<NvmlLibrary> library) : library_(std::move(library)) {}
GpuMonitor::~GpuMonitor() = default;

std::unique_ptr<GpuMonitor> GpuMonitor::open(const std::string& library, std::string* why,
                                             std::string* remedy) {
  NvmlTrouble trouble;
  std::unique_ptr<NvmlLibrary> loaded = NvmlLibrary::load(library, trouble);
  if (loaded != nullptr) {
    return std::unique_ptr<GpuMonitor>(new GpuMonitor(std::move(loaded)));
  }
  if (why != nullptr) {
    *why = trouble.why;
  }
  if (remedy != nullptr) {
    *remedy = trouble.remedy;
  }
  return nullptr;
}

DriverFacts GpuMonitor::driver() const {
  const NvmlCalls& calls = library_->calls();
  DriverFacts facts;
  std::array<char, 80> text{};
  if (calls.driver_version != nullptr &&
      calls.driver_version(text.data(), text.size() - 1) == NVML_SUCCESS) {
    facts.version = text.data();
  }
  facts.cuda_version = static_cast<int>(read<int>(calls.cuda_version).value_or(0));
  return facts;
}

GpuState GpuMonitor::state_of(unsigned index) const {
  const NvmlCalls& calls = library_->calls();
  GpuState gpu;
  gpu.index = static_cast<int>(index);
  nvmlDevice_t device = nullptr;
  if (const nvmlReturn_t error = calls.handle(index, &device); error != NVML_SUCCESS) {
    gpu.failure = library_->text(error);
    return gpu;
  }
  gpu.name = read_text<NVML_DEVICE_NAME_V2_BUFFER_SIZE>(calls.name, device);
  gpu.uuid = read_text<NVML_DEVICE_UUID_V2_BUFFER_SIZE>(calls.uuid, device);
  gpu.bus = bus_of(calls, device);
  // A GPU that has fallen off the bus may still have a handle and a name.
  nvmlMemory_t memory{};
  const nvmlReturn_t error = calls.memory == nullptr ? NVML_SUCCESS : calls.memory(device, &memory);
  if (error == NVML_ERROR_GPU_IS_LOST || error == NVML_ERROR_RESET_REQUIRED ||
      error == NVML_ERROR_UNKNOWN) {
    gpu.failure = library_->text(error);
    return gpu;
  }
  read_memory(calls, device, gpu);
  read_speeds(calls, device, gpu);
  read_nvlinks(calls, device, gpu);
  read_use(calls, device, gpu);
  return gpu;
}

std::vector<GpuState> GpuMonitor::gpus() const {
  const NvmlCalls& calls = library_->calls();
  unsigned count = 0;
  std::vector<GpuState> all;
  if (calls.count == nullptr || calls.handle == nullptr || calls.count(&count) != NVML_SUCCESS) {
    return all;
  }
  for (unsigned index = 0; index < count; ++index) {
    all.push_back(state_of(index));
  }
  return all;
}

std::optional<double> GpuMonitor::energy_joules(const std::string& uuid) const {
  const nvmlDevice_t device = device_with(library_->calls(), uuid);
  const Reading millijoules =
      device == nullptr ? std::nullopt : read<unsigned long long>(library_->calls().energy, device);
  return millijoules ? std::optional(1e-3 * static_cast<double>(*millijoules)) : std::nullopt;
}

bool GpuMonitor::watch(const std::string& uuid) {
  const NvmlCalls& calls = library_->calls();
  const nvmlDevice_t device = device_with(calls, uuid);
  if (device == nullptr || calls.make_events == nullptr || calls.register_events == nullptr ||
      calls.wait_for_event == nullptr || calls.free_events == nullptr) {
    return false;
  }
  auto events = std::make_unique<Events>(Events{calls, nullptr, device});
  constexpr auto kTypes = static_cast<unsigned long long>(nvmlEventTypeXidCriticalError |
                                                          nvmlEventTypeDoubleBitEccError);
  if (calls.make_events(&events->set) != NVML_SUCCESS ||
      calls.register_events(device, kTypes, events->set) != NVML_SUCCESS) {
    return false;
  }
  events_ = std::move(events);
  return true;
}

std::vector<int> GpuMonitor::new_xids(unsigned wait_ms) {
  constexpr int kDoubleBitError = 48;  // the XID of such an event, which itself carries none
  constexpr std::size_t kMost = 64;
  std::vector<int> xids;
  nvmlEventData_t event{};
  while (events_ != nullptr && xids.size() < kMost &&
         library_->calls().wait_for_event(events_->set, &event, wait_ms) == NVML_SUCCESS) {
    const bool is_xid = event.eventType == nvmlEventTypeXidCriticalError;
    xids.push_back(is_xid ? static_cast<int>(event.eventData) : kDoubleBitError);
    wait_ms = 0;
  }
  return xids;
}

}  // namespace trireme
