#include "mpi/nccl/nccl_check.h"

#include "src/base/error.h"

namespace trireme {

void throw_nccl_error(ncclResult_t result, const char* call, ncclComm_t comm) {
  const char* const details = ncclGetLastError(comm);
  const std::string text = fmt::format(
      "{} failed: {}{}{}; NCCL_DEBUG=WARN shows more", call, ncclGetErrorString(result),
      details == nullptr || *details == '\0' ? "" : ": ", details == nullptr ? "" : details);
  if (result == ncclUnhandledCudaError) {  // an error of this process's own device
    throw DeviceError(text);
  }
  throw CommError(text);
}

}  // namespace trireme
