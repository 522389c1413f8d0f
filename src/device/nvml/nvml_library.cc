#include "src/device/nvml/nvml_library.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace trireme {

template <class Function>
void NvmlLibrary::find(Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(handle_, name));
}

void NvmlLibrary::find_all() {
  NvmlCalls& c = calls_;
  find(c.init, "nvmlInit_v2");
  find(c.shutdown, "nvmlShutdown");
  find(c.error_string, "nvmlErrorString");
  find(c.driver_version, "nvmlSystemGetDriverVersion");
  find(c.cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
  find(c.count, "nvmlDeviceGetCount_v2");
  find(c.handle, "nvmlDeviceGetHandleByIndex_v2");
  find(c.name, "nvmlDeviceGetName");
  find(c.uuid, "nvmlDeviceGetUUID");
  find(c.pci_info, "nvmlDeviceGetPciInfo_v3");
  find(c.memory, "nvmlDeviceGetMemoryInfo");
  find(c.persistence, "nvmlDeviceGetPersistenceMode");
  find(c.compute_mode, "nvmlDeviceGetComputeMode");
  find(c.mig_mode, "nvmlDeviceGetMigMode");
  find(c.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  find(c.remapped_rows, "nvmlDeviceGetRemappedRows");
  find(c.clock, "nvmlDeviceGetClockInfo");
  find(c.most_clock, "nvmlDeviceGetMaxClockInfo");
  find(c.clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  if (c.clock_reasons == nullptr) {  // its name before driver 535
    find(c.clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  find(c.pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  find(c.most_pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  find(c.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  find(c.most_pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
  find(c.pcie_replays, "nvmlDeviceGetPcieReplayCounter");
  find(c.nvlink_state, "nvmlDeviceGetNvLinkState");
  find(c.nvlink_errors, "nvmlDeviceGetNvLinkErrorCounter");
  find(c.energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(c.processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  find(c.make_events, "nvmlEventSetCreate");
  find(c.register_events, "nvmlDeviceRegisterEvents");
  find(c.wait_for_event, "nvmlEventSetWait_v2");
  find(c.free_events, "nvmlEventSetFree");
}

namespace {

// Says what to do if the library is there but does not find its driver.
const char* remedy_for(nvmlReturn_t error) {
  switch (error) {
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "load the driver's kernel module (modprobe nvidia), or start the service "
             "nvidia-persistenced";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "the driver's library and its kernel module are of different versions, as after an "
             "update: restart the node, or reload the module nvidia";
    case NVML_ERROR_NO_PERMISSION:
      return "let this user and job open the devices /dev/nvidia*";
    default:
      return "see what nvidia-smi and the kernel's log (dmesg) say";
  }
}

}  // namespace

std::unique_ptr<NvmlLibrary> NvmlLibrary::load(const std::string& path, NvmlTrouble& trouble) {
  if (path.empty()) {  // dlopen would return the program itself
    trouble = {"no NVIDIA driver to ask: a simulated device has none", ""};
    return nullptr;
  }
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const error = ::dlerror();
    trouble = {fmt::format("no NVIDIA driver library: {}", error == nullptr ? path : error),
               "install the driver's library libnvidia-ml.so.1 (libnvidia-ml1, or nvidia-utils)"};
    return nullptr;
  }
  std::unique_ptr<NvmlLibrary> library(new NvmlLibrary(handle));
  library->find_all();
  const NvmlCalls& calls = library->calls_;
  if (calls.init == nullptr || calls.shutdown == nullptr || calls.error_string == nullptr) {
    trouble = {fmt::format("{} is not NVIDIA's management library: it lacks nvmlInit_v2", path),
               "check LD_LIBRARY_PATH, and install the driver's own library"};
    return nullptr;
  }
  if (const nvmlReturn_t error = calls.init(); error != NVML_SUCCESS) {
    trouble = {fmt::format("{}: {}", path, library->text(error)), remedy_for(error)};
    return nullptr;
  }
  library->is_initialized_ = true;
  return library;
}

NvmlLibrary::~NvmlLibrary() {
  if (is_initialized_) {
    (void)calls_.shutdown();
  }
  ::dlclose(handle_);
}

}  // namespace trireme
