// Turns NCCL's error codes into exceptions.
#pragma once

#include <nccl.h>

namespace trireme {

// Throws CommError that names the call, the error, and what NCCL says about it. `comm` may be null.
[[noreturn]] void throw_nccl_error(ncclResult_t result, const char* call, ncclComm_t comm);

// Accepts operations that a communicator without blocking has not finished starting.
inline void nccl_check(ncclResult_t result, const char* call, ncclComm_t comm = nullptr) {
  if (result != ncclSuccess && result != ncclInProgress) {
    throw_nccl_error(result, call, comm);
  }
}

}  // namespace trireme
