// NvmlLibrary loads NVIDIA's management library and keeps the addresses of its functions. Owned by
// GpuMonitor; its functions may be called from any thread.
#pragma once

#include <memory>
#include <string>

#include <nvml.h>

namespace trireme {

// The functions of NVML that this program calls. Only the first three are always there; an older
// driver may lack any other, which is then null.
struct NvmlCalls {
  decltype(&nvmlInit_v2) init = nullptr;
  decltype(&nvmlShutdown) shutdown = nullptr;
  decltype(&nvmlErrorString) error_string = nullptr;
  decltype(&nvmlSystemGetDriverVersion) driver_version = nullptr;
  decltype(&nvmlSystemGetCudaDriverVersion_v2) cuda_version = nullptr;
  decltype(&nvmlDeviceGetCount_v2) count = nullptr;
  decltype(&nvmlDeviceGetHandleByIndex_v2) handle = nullptr;
  decltype(&nvmlDeviceGetName) name = nullptr;
  decltype(&nvmlDeviceGetUUID) uuid = nullptr;
  decltype(&nvmlDeviceGetPciInfo_v3) pci_info = nullptr;
  decltype(&nvmlDeviceGetMemoryInfo) memory = nullptr;
  decltype(&nvmlDeviceGetPersistenceMode) persistence = nullptr;
  decltype(&nvmlDeviceGetComputeMode) compute_mode = nullptr;
  decltype(&nvmlDeviceGetMigMode) mig_mode = nullptr;
  decltype(&nvmlDeviceGetTotalEccErrors) ecc_errors = nullptr;
  decltype(&nvmlDeviceGetRemappedRows) remapped_rows = nullptr;
  decltype(&nvmlDeviceGetClockInfo) clock = nullptr;
  decltype(&nvmlDeviceGetMaxClockInfo) most_clock = nullptr;
  decltype(&nvmlDeviceGetCurrentClocksEventReasons) clock_reasons = nullptr;
  decltype(&nvmlDeviceGetCurrPcieLinkGeneration) pcie_generation = nullptr;
  decltype(&nvmlDeviceGetMaxPcieLinkGeneration) most_pcie_generation = nullptr;
  decltype(&nvmlDeviceGetCurrPcieLinkWidth) pcie_width = nullptr;
  decltype(&nvmlDeviceGetMaxPcieLinkWidth) most_pcie_width = nullptr;
  decltype(&nvmlDeviceGetPcieReplayCounter) pcie_replays = nullptr;
  decltype(&nvmlDeviceGetNvLinkState) nvlink_state = nullptr;
  decltype(&nvmlDeviceGetNvLinkErrorCounter) nvlink_errors = nullptr;
  decltype(&nvmlDeviceGetTotalEnergyConsumption) energy = nullptr;
  decltype(&nvmlDeviceGetComputeRunningProcesses_v3) processes = nullptr;
  decltype(&nvmlEventSetCreate) make_events = nullptr;
  decltype(&nvmlDeviceRegisterEvents) register_events = nullptr;
  decltype(&nvmlEventSetWait_v2) wait_for_event = nullptr;
  decltype(&nvmlEventSetFree) free_events = nullptr;
};

// Why the driver cannot be asked.
struct NvmlTrouble {
  std::string why;
  std::string remedy;  // what to do; empty if nothing helps
};

class NvmlLibrary {
 public:
  // Loads the library and initializes it. Returns null if it is missing or has no driver to talk
  // to; `trouble` then says so in words.
  static std::unique_ptr<NvmlLibrary> load(const std::string& path, NvmlTrouble& trouble);
  ~NvmlLibrary();
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  const NvmlCalls& calls() const { return calls_; }
  // Returns NVML's words for an error.
  std::string text(nvmlReturn_t error) const { return calls_.error_string(error); }

 private:
  explicit NvmlLibrary(void* handle) : handle_(handle) {}
  template <class Function>
  void find(Function& function, const char* name);
  void find_all();

  void* handle_;
  NvmlCalls calls_;
  bool is_initialized_ = false;
};

}  // namespace trireme
