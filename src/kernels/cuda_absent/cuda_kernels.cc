#include "src/kernels/cuda_kernels.h"

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr const char* kAbsent =
    "this program was built without CUDA: configure with the preset 'cuda', or compute on the CPU "
    "(train.device=cpu, or --device cpu)";

}  // namespace

const Kernels& cuda_kernels(CudaAttention) { throw ConfigError(kAbsent); }
std::string cuda_product_library() { throw ConfigError(kAbsent); }
std::string cuda_instructions() { throw ConfigError(kAbsent); }
std::int64_t cuda_workspace_bytes(std::int64_t, std::int64_t) { return 0; }
std::int64_t cuda_choice_bytes(std::int64_t, std::int64_t) { return 0; }
ProductTable choose_cuda_products(int, const std::vector<Matmul>&) { throw ConfigError(kAbsent); }
ProductTable choose_cuda_attention(int, const AttentionCalls&) { throw ConfigError(kAbsent); }
std::int64_t cuda_attention_bytes(const AttentionForward&) { return 0; }
void close_cuda_choices(int) { throw ConfigError(kAbsent); }

}  // namespace trireme
