// CudnnLibrary holds cuDNN's functions, which are looked up when attention by cuDNN is asked for: a
// program starts without the library. One per process, never unloaded; any thread.
#pragma once

#include <string>

#include <cudnn.h>

namespace trireme::cuda {

struct CudnnCalls {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;
};

// Returns cuDNN's functions. Throws ConfigError if the library is missing or of a version that this
// program does not know, and says what to do.
const CudnnCalls& cudnn_calls();

// Returns, for example, "9.19.0".
std::string cudnn_version_text(std::size_t version);

}  // namespace trireme::cuda
