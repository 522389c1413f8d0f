// Turns NCCL's error codes into exceptions.
#pragma once

#include <string_view>

#include <nccl.h>

namespace trireme {

// Returns whether NCCL found no memory, by the result and by what ncclGetLastError says about it.
bool is_out_of_memory(ncclResult_t result, std::string_view details);

// Throws an error that names the call, the result, and what NCCL says about it: ResourceError if it
// found no memory, DeviceError for an error of this process's device, CommError for others. `comm`
// may be null.
[[noreturn]] void throw_nccl_error(ncclResult_t result, const char* call, ncclComm_t comm);

// Accepts operations that a communicator without blocking has not finished starting.
inline void nccl_check(ncclResult_t result, const char* call, ncclComm_t comm = nullptr) {
  if (result != ncclSuccess && result != ncclInProgress) {
    throw_nccl_error(result, call, comm);
  }
}

}  // namespace trireme
