// Checks what this program assumes about NVML: types of functions, values of constants, layouts.
// It is compiled with our own declarations, and with NVIDIA's nvml.h where that is installed: if
// both compile, they agree.
#include <cstddef>
#include <type_traits>

#include <nvml.h>

namespace trireme {
namespace {

// The functions are never called here, so they need no definitions.
#define SIGNATURE(result, name, parameters) \
  static_assert(std::is_same_v<decltype(&::name), result(*) parameters>, #name)

SIGNATURE(nvmlReturn_t, nvmlInit_v2, ());
SIGNATURE(nvmlReturn_t, nvmlShutdown, ());
SIGNATURE(const char*, nvmlErrorString, (nvmlReturn_t));
SIGNATURE(nvmlReturn_t, nvmlSystemGetDriverVersion, (char*, unsigned));
SIGNATURE(nvmlReturn_t, nvmlSystemGetCudaDriverVersion_v2, (int*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetCount_v2, (unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetHandleByIndex_v2, (unsigned, nvmlDevice_t*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetName, (nvmlDevice_t, char*, unsigned));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetUUID, (nvmlDevice_t, char*, unsigned));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetPersistenceMode, (nvmlDevice_t, nvmlEnableState_t*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetComputeMode, (nvmlDevice_t, nvmlComputeMode_t*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetMigMode, (nvmlDevice_t, unsigned*, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetTotalEccErrors,
          (nvmlDevice_t, nvmlMemoryErrorType_t, nvmlEccCounterType_t, unsigned long long*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetRemappedRows,
          (nvmlDevice_t, unsigned*, unsigned*, unsigned*, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetClockInfo, (nvmlDevice_t, nvmlClockType_t, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetMaxClockInfo, (nvmlDevice_t, nvmlClockType_t, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetCurrentClocksEventReasons,
          (nvmlDevice_t, unsigned long long*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetPcieReplayCounter, (nvmlDevice_t, unsigned*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetNvLinkState, (nvmlDevice_t, unsigned, nvmlEnableState_t*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetNvLinkErrorCounter,
          (nvmlDevice_t, unsigned, nvmlNvLinkErrorCounter_t, unsigned long long*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetTotalEnergyConsumption, (nvmlDevice_t, unsigned long long*));
SIGNATURE(nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses_v3,
          (nvmlDevice_t, unsigned*, nvmlProcessInfo_t*));
SIGNATURE(nvmlReturn_t, nvmlEventSetCreate, (nvmlEventSet_t*));
SIGNATURE(nvmlReturn_t, nvmlDeviceRegisterEvents,
          (nvmlDevice_t, unsigned long long, nvmlEventSet_t));
SIGNATURE(nvmlReturn_t, nvmlEventSetWait_v2, (nvmlEventSet_t, nvmlEventData_t*, unsigned));
SIGNATURE(nvmlReturn_t, nvmlEventSetFree, (nvmlEventSet_t));

static_assert(NVML_SUCCESS == 0 && NVML_ERROR_UNINITIALIZED == 1 &&
              NVML_ERROR_INVALID_ARGUMENT == 2 && NVML_ERROR_NOT_SUPPORTED == 3 &&
              NVML_ERROR_NO_PERMISSION == 4 && NVML_ERROR_INSUFFICIENT_SIZE == 7 &&
              NVML_ERROR_DRIVER_NOT_LOADED == 9 && NVML_ERROR_TIMEOUT == 10 &&
              NVML_ERROR_FUNCTION_NOT_FOUND == 13 && NVML_ERROR_GPU_IS_LOST == 15 &&
              NVML_ERROR_RESET_REQUIRED == 16 && NVML_ERROR_LIB_RM_VERSION_MISMATCH == 18 &&
              NVML_ERROR_UNKNOWN == 999);
static_assert(NVML_FEATURE_DISABLED == 0 && NVML_FEATURE_ENABLED == 1);
static_assert(NVML_COMPUTEMODE_DEFAULT == 0 && NVML_COMPUTEMODE_PROHIBITED == 2 &&
              NVML_COMPUTEMODE_EXCLUSIVE_PROCESS == 3);
static_assert(NVML_MEMORY_ERROR_TYPE_CORRECTED == 0 && NVML_MEMORY_ERROR_TYPE_UNCORRECTED == 1);
static_assert(NVML_VOLATILE_ECC == 0 && NVML_AGGREGATE_ECC == 1);
static_assert(NVML_CLOCK_SM == 1 && NVML_CLOCK_MEM == 2);
static_assert(NVML_NVLINK_ERROR_DL_REPLAY == 0 && NVML_NVLINK_ERROR_DL_RECOVERY == 1 &&
              NVML_NVLINK_ERROR_DL_CRC_FLIT == 2);
static_assert(NVML_NVLINK_MAX_LINKS == 18 && NVML_DEVICE_UUID_V2_BUFFER_SIZE == 96 &&
              NVML_DEVICE_NAME_V2_BUFFER_SIZE == 96);
static_assert(nvmlEventTypeDoubleBitEccError == 2 && nvmlEventTypeXidCriticalError == 8);
static_assert(nvmlClocksEventReasonSwPowerCap == 4 && nvmlClocksThrottleReasonHwSlowdown == 8 &&
              nvmlClocksEventReasonSwThermalSlowdown == 0x20 &&
              nvmlClocksThrottleReasonHwThermalSlowdown == 0x40 &&
              nvmlClocksThrottleReasonHwPowerBrakeSlowdown == 0x80);

static_assert(sizeof(nvmlReturn_t) == 4 && sizeof(nvmlEnableState_t) == 4 &&
              sizeof(nvmlComputeMode_t) == 4 && sizeof(nvmlClockType_t) == 4);
static_assert(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, domain) == 16 &&
              offsetof(nvmlPciInfo_t, bus) == 20 && offsetof(nvmlPciInfo_t, device) == 24 &&
              offsetof(nvmlPciInfo_t, busId) == 36);
static_assert(sizeof(nvmlMemory_t) == 24 && offsetof(nvmlMemory_t, used) == 16);
static_assert(sizeof(nvmlProcessInfo_t) == 24 && offsetof(nvmlProcessInfo_t, pid) == 0 &&
              offsetof(nvmlProcessInfo_t, usedGpuMemory) == 8 &&
              offsetof(nvmlProcessInfo_t, computeInstanceId) == 20);
static_assert(sizeof(nvmlEventData_t) == 32 && offsetof(nvmlEventData_t, eventType) == 8 &&
              offsetof(nvmlEventData_t, eventData) == 16);

}  // namespace
}  // namespace trireme
