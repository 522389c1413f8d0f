// A stand-in for NVIDIA's management library: the GPUs that it reports are those of the simulated
// device (TRIREME_SIM_DEVICES), in good health unless a script says otherwise. The script is the
// file that TRIREME_SIM_NVML_SCRIPT names, read by nvmlInit_v2(). Each line has a GPU ("all", or a
// number), a key and a value, separated by blanks:
//
//   all persistence 0
//   1   ecc_uncorrected 3
//   2   memory_total lost         any key may be "lost" or "unsupported"
//   0   xid 79                    reported once to each program that watches the GPU
//   1   process 4711              also: process_memory 1048576; process_looks 2 (it has ended when
//                                 a program asks for the third time)
//   0   later_clock_reasons 0x40  replaces clock_reasons from the second time that a program asks
//   all driver 535.54.03          also: cuda 12020; init 9 (the error of nvmlInit_v2)
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <nvml.h>

struct nvmlDevice_st {
  unsigned index = 0;
  unsigned looks = 0;  // how often this program has asked for its processes
};
struct nvmlEventSet_st {
  nvmlDevice_t device = nullptr;
  std::set<unsigned> reported = {};
};

namespace {

constexpr unsigned kMostGpus = 64;
nvmlDevice_st devices[kMostGpus];

std::map<std::pair<std::string, std::string>, std::string>& script() {
  static std::map<std::pair<std::string, std::string>, std::string> values;
  return values;
}

unsigned gpu_count() {
  const char* const count = std::getenv("TRIREME_SIM_DEVICES");
  return count == nullptr || *count == '\0' ? 8 : static_cast<unsigned>(std::atoi(count));
}

// Returns the script's value for one GPU, else for all, else `normal`.
std::string value_of(const std::string& gpu, const std::string& key, const std::string& normal) {
  for (const std::string& who : {gpu, std::string("all")}) {
    if (const auto found = script().find({who, key}); found != script().end()) {
      return found->second;
    }
  }
  return normal;
}
std::string value_of(nvmlDevice_t device, const std::string& key, const std::string& normal) {
  return value_of(std::to_string(device->index), key, normal);
}

nvmlReturn_t error_in(const std::string& value) {
  return value == "lost"          ? NVML_ERROR_GPU_IS_LOST
         : value == "unsupported" ? NVML_ERROR_NOT_SUPPORTED
                                  : NVML_SUCCESS;
}

template <class Number>
nvmlReturn_t give(nvmlDevice_t device, const std::string& key, const std::string& normal,
                  Number* to) {
  const std::string value = value_of(device, key, normal);
  const nvmlReturn_t error = error_in(value);
  if (error == NVML_SUCCESS) {
    *to = static_cast<Number>(std::strtoull(value.c_str(), nullptr, 0));
  }
  return error;
}

nvmlReturn_t give_text(const std::string& text, char* to, unsigned bytes) {
  if (text.size() + 1 > bytes) {
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  std::strcpy(to, text.c_str());
  return NVML_SUCCESS;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() {
  script().clear();
  if (const char* const path = std::getenv("TRIREME_SIM_NVML_SCRIPT"); path != nullptr) {
    std::ifstream lines(path);
    for (std::string gpu, key, value; lines >> gpu >> key >> value;) {
      script()[{gpu, key}] = value;
    }
  }
  for (unsigned i = 0; i < kMostGpus; ++i) {
    devices[i].index = i;
  }
  return static_cast<nvmlReturn_t>(std::atoi(value_of("all", "init", "0").c_str()));
}
nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }
const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}
nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return give_text(value_of("all", "driver", "580.0-simulated"), version, length);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = std::atoi(value_of("all", "cuda", "13000").c_str());
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpu_count();
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  *device = &devices[index];
  return error_in(value_of(*device, "handle", ""));
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  return give_text(value_of(device, "name", "simulated_device"), name, length);
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  char last[3];
  std::snprintf(last, sizeof last, "%02x", device->index);
  return give_text(std::string("GPU-73696d75-6c61-7465-6420-6465766963") + last, uuid, length);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  *pci = {};
  pci->bus = device->index + 1;
  std::snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  *memory = {};
  (void)give(device, "memory_used", "0", &memory->used);
  return give(device, "memory_total", "1073741824", &memory->total);
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return give(device, "persistence", "1", mode);
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode) {
  return give(device, "compute_mode", "0", mode);
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  *pending = 0;
  return give(device, "mig", "0", current);
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t, unsigned long long* count) {
  const bool is_corrected = type == NVML_MEMORY_ERROR_TYPE_CORRECTED;
  return give(device, is_corrected ? "ecc_corrected" : "ecc_uncorrected", "0", count);
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* corrected,
                                       unsigned* uncorrected, unsigned* pending, unsigned* failed) {
  *corrected = 0;
  (void)give(device, "remap_pending", "0", pending);
  (void)give(device, "remap_failed", "0", failed);
  return give(device, "rows_remapped", "0", uncorrected);
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz) {
  return give(device, type == NVML_CLOCK_SM ? "sm_mhz" : "memory_mhz", "1000", mhz);
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz) {
  return give(device, type == NVML_CLOCK_SM ? "most_sm_mhz" : "most_memory_mhz", "1000", mhz);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long* reasons) {
  static std::map<unsigned, unsigned> looks;
  const bool is_first = looks[device->index]++ == 0;
  const std::string later = value_of(device, "later_clock_reasons", "");
  return is_first || later.empty() ? give(device, "clock_reasons", "0", reasons)
                                   : give(device, "later_clock_reasons", "0", reasons);
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return give(device, "pcie_generation", "5", generation);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return give(device, "most_pcie_generation", "5", generation);
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned* width) {
  return give(device, "pcie_width", "16", width);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned* width) {
  return give(device, "most_pcie_width", "16", width);
}
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned* replays) {
  return give(device, "pcie_replays", "0", replays);
}
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link,
                                      nvmlEnableState_t* state) {
  unsigned links = 0;
  unsigned down = 0;
  (void)give(device, "nvlinks", "0", &links);
  (void)give(device, "nvlinks_down", "0", &down);
  *state = link < down ? NVML_FEATURE_DISABLED : NVML_FEATURE_ENABLED;
  return link < links ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned,
                                             nvmlNvLinkErrorCounter_t, unsigned long long* count) {
  return give(device, "nvlink_errors", "0", count);
}
// Each reading is one joule above the one before, unless the script sets the counter.
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* mj) {
  static std::map<unsigned, unsigned long long> readings;
  return give(device, "energy_mj", std::to_string(1000 * ++readings[device->index]), mj);
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* processes) {
  unsigned pid = 0;
  const nvmlReturn_t error = give(device, "process", "0", &pid);
  *count = pid == 0 ? 0 : 1;
  processes[0] = {};
  processes[0].pid = pid;
  (void)give(device, "process_memory", "0", &processes[0].usedGpuMemory);
  unsigned looks = 0;
  (void)give(device, "process_looks", "-1", &looks);
  *count = device->looks++ < looks ? *count : 0;
  return error;
}
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  *set = new nvmlEventSet_st;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long, nvmlEventSet_t set) {
  set->device = device;
  return error_in(value_of(device, "events", ""));
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* event, unsigned) {
  unsigned xid = 0;
  (void)give(set->device, "xid", "0", &xid);
  if (xid == 0 || !set->reported.insert(xid).second) {
    return NVML_ERROR_TIMEOUT;
  }
  *event = {};
  event->device = set->device;
  event->eventType = nvmlEventTypeXidCriticalError;
  event->eventData = xid;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  delete set;
  return NVML_SUCCESS;
}
}
