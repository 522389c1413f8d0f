#include "src/kernels/cuda/cudnn_library.h"

#include <cuda_flavour.h>

#include "src/base/error.h"

namespace trireme::cuda {
namespace {

// The oldest version that takes minus infinity as the score of a masked key, and the first whose
// interface may be another.
constexpr std::size_t kOldestCudnn = 91000;
constexpr std::size_t kTooNewCudnn = 100000;

constexpr const char* kAdvice =
    "install cuDNN 9 (for example the package nvidia-cudnn-cu13) and name the folder of "
    "libcudnn.so.9 in LD_LIBRARY_PATH, or set train.attention=own";

template <class Function>
void find(Function& function, const char* name) {
  std::string why;
  void* const found = flavour_cudnn_function(name, why);
  if (found == nullptr) {
    throw ConfigError(
        fmt::format("train.attention is cudnn, but cuDNN cannot be used ({}): {}", why, kAdvice));
  }
  function = reinterpret_cast<Function>(found);
}

CudnnCalls load() {
  CudnnCalls calls;
  find(calls.version, "cudnnGetVersion");
  const std::size_t version = calls.version();
  if (version < kOldestCudnn || version >= kTooNewCudnn) {
    throw ConfigError(fmt::format(
        "train.attention is cudnn, but this node has cuDNN {}, and this program uses {} to 9.x: {}",
        cudnn_version_text(version), cudnn_version_text(kOldestCudnn), kAdvice));
  }
  find(calls.error_string, "cudnnGetErrorString");
  find(calls.last_error, "cudnnGetLastErrorString");
  find(calls.create, "cudnnCreate");
  find(calls.set_stream, "cudnnSetStream");
  find(calls.create_descriptor, "cudnnBackendCreateDescriptor");
  find(calls.destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(calls.finalize, "cudnnBackendFinalize");
  find(calls.set_attribute, "cudnnBackendSetAttribute");
  find(calls.get_attribute, "cudnnBackendGetAttribute");
  find(calls.execute, "cudnnBackendExecute");
  return calls;
}

}  // namespace

const CudnnCalls& cudnn_calls() {
  static const CudnnCalls calls = load();
  return calls;
}

std::string cudnn_version_text(std::size_t version) {
  const std::size_t major = version >= 10000 ? 10000 : 1000;  // of 9 and later, and of 8
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

}  // namespace trireme::cuda
