#include "src/kernels/cuda_kernels.h"

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr const char* kAbsent =
    "this program was built without CUDA: configure with the preset 'cuda', or compute on the CPU "
    "(train.device=cpu, or --device cpu)";

}  // namespace

const Kernels& cuda_kernels() { throw ConfigError(kAbsent); }
std::string cuda_product_library() { throw ConfigError(kAbsent); }
std::string cuda_instructions() { throw ConfigError(kAbsent); }
std::int64_t cuda_workspace_bytes(std::int64_t, std::int64_t) { return 0; }

}  // namespace trireme
