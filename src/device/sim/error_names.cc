// The names and descriptions of errors.
#include <array>
#include <charconv>
#include <string>

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include "src/device/sim/fault.h"

namespace sim {
namespace {

struct ErrorName {
  int value;
  const char* name;
  const char* text;
};

constexpr std::array kCudaErrors = {
    ErrorName{cudaSuccess, "cudaSuccess", "no error"},
    ErrorName{cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    ErrorName{cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    ErrorName{cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    ErrorName{cudaErrorCudartUnloading, "cudaErrorCudartUnloading", "driver shutting down"},
    ErrorName{cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
              "invalid configuration argument"},
    ErrorName{cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
              "CUDA driver version is insufficient for CUDA runtime version"},
    ErrorName{cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
              "CUDA-capable device(s) is/are busy or unavailable"},
    ErrorName{cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction",
              "invalid device function"},
    ErrorName{cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    ErrorName{cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    ErrorName{cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
              "no kernel image is available for execution on the device"},
    ErrorName{cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable",
              "uncorrectable ECC error encountered"},
    ErrorName{cudaErrorNvlinkUncorrectable, "cudaErrorNvlinkUncorrectable",
              "uncorrectable NVLink error detected during the execution"},
    ErrorName{cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle",
              "invalid resource handle"},
    ErrorName{cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    ErrorName{cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
              "an illegal memory access was encountered"},
    ErrorName{cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
              "too many resources requested for launch"},
    ErrorName{cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout",
              "the launch timed out and was terminated"},
    ErrorName{cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
              "peer access is already enabled"},
    ErrorName{cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
              "part or all of the requested memory range is already mapped"},
    ErrorName{cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
              "pointer does not correspond to a registered memory region"},
    ErrorName{cudaErrorHardwareStackError, "cudaErrorHardwareStackError", "hardware stack error"},
    ErrorName{cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    ErrorName{cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    ErrorName{cudaErrorSystemNotReady, "cudaErrorSystemNotReady", "system not yet initialized"},
    ErrorName{cudaErrorSystemDriverMismatch, "cudaErrorSystemDriverMismatch",
              "system has unsupported display driver / cuda driver combination"},
    ErrorName{cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
              "operation not permitted when stream is capturing"},
    ErrorName{cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
              "operation failed due to a previous error during capture"},
    ErrorName{cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
              "capture was not initiated in this stream"},
    ErrorName{cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
              "capturing stream has unjoined work"},
    ErrorName{cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
              "dependency created on uncaptured work in another stream"},
    ErrorName{cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
              "operation would make the legacy stream depend on a capturing blocking stream"},
    ErrorName{cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
              "operation not permitted on an event last recorded in a capturing stream"},
    ErrorName{cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
              "attempt to terminate a thread-local capture sequence from another thread"},
    ErrorName{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

constexpr std::array kNcclErrors = {
    ErrorName{ncclSuccess, "ncclSuccess", "no error"},
    ErrorName{ncclUnhandledCudaError, "ncclUnhandledCudaError", "unhandled cuda error"},
    ErrorName{ncclSystemError, "ncclSystemError", "unhandled system error"},
    ErrorName{ncclInternalError, "ncclInternalError", "internal error"},
    ErrorName{ncclInvalidArgument, "ncclInvalidArgument", "invalid argument"},
    ErrorName{ncclInvalidUsage, "ncclInvalidUsage", "invalid usage"},
    ErrorName{ncclRemoteError, "ncclRemoteError",
              "remote process exited or there was a network error"},
    ErrorName{ncclInProgress, "ncclInProgress", "NCCL operation in progress"},
};

constexpr std::array kCublasErrors = {
    ErrorName{CUBLAS_STATUS_SUCCESS, "CUBLAS_STATUS_SUCCESS", "success"},
    ErrorName{CUBLAS_STATUS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED", "not initialized"},
    ErrorName{CUBLAS_STATUS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED", "allocation failed"},
    ErrorName{CUBLAS_STATUS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE", "invalid value"},
    ErrorName{CUBLAS_STATUS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED", "execution failed"},
    ErrorName{CUBLAS_STATUS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR", "internal error"},
    ErrorName{CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED", "not supported"},
};

template <class Names>
const ErrorName* name_of(const Names& names, int value) {
  for (const ErrorName& one : names) {
    if (one.value == value) {
      return &one;
    }
  }
  return nullptr;
}

template <class Names>
std::optional<int> value_in(const Names& names, std::string_view name) {
  for (const ErrorName& one : names) {
    if (one.name == name) {
      return one.value;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<int> error_value(std::string_view name) {
  int number = 0;
  const char* end = name.data() + name.size();
  if (!name.empty() && std::from_chars(name.data(), end, number).ptr == end) {
    return number;
  }
  if (const auto value = value_in(kCudaErrors, name)) {
    return value;
  }
  if (const auto value = value_in(kNcclErrors, name)) {
    return value;
  }
  return value_in(kCublasErrors, name);
}

}  // namespace sim

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  const auto* found = sim::name_of(sim::kCudaErrors, error);
  return found == nullptr ? "unrecognized error code" : found->name;
}
const char* cudaGetErrorString(cudaError_t error) {
  const auto* found = sim::name_of(sim::kCudaErrors, error);
  return found == nullptr ? "unrecognized error code" : found->text;
}
const char* ncclGetErrorString(ncclResult_t error) {
  const auto* found = sim::name_of(sim::kNcclErrors, error);
  return found == nullptr ? "unknown result code" : found->text;
}
const char* cublasGetStatusName(cublasStatus_t status) {
  const auto* found = sim::name_of(sim::kCublasErrors, status);
  return found == nullptr ? "unknown status" : found->name;
}
const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }
const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }
}
