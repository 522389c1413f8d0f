#include "mpi/nccl/nccl_check.h"

#include "src/base/error.h"

namespace trireme {

// NCCL says in words only that a device or the host has no memory left.
bool is_out_of_memory(ncclResult_t result, std::string_view details) {
  return (result == ncclUnhandledCudaError || result == ncclSystemError) &&
         (details.find("out of memory") != std::string_view::npos ||
          details.find("Cannot allocate memory") != std::string_view::npos);
}

void throw_nccl_error(ncclResult_t result, const char* call, ncclComm_t comm) {
  const char* const words = ncclGetLastError(comm);
  const std::string_view details = words == nullptr ? "" : words;
  const std::string text =
      fmt::format("{} failed: {}{}{}; NCCL_DEBUG=WARN shows more", call, ncclGetErrorString(result),
                  details.empty() ? "" : ": ", details);
  if (is_out_of_memory(result, details)) {
    throw ResourceError("out of memory in NCCL, for its buffers: " + text);
  }
  if (result == ncclUnhandledCudaError) {  // an error of this process's own device
    throw DeviceError(text);
  }
  throw CommError(text);
}

}  // namespace trireme
