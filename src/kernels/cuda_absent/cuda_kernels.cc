#include "src/kernels/cuda_kernels.h"

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr const char* kAbsent =
    "built without CUDA kernels: configure with the preset 'cuda', or train on cpu";

}  // namespace

const Kernels& cuda_kernels() { throw DeviceError(kAbsent); }
std::string cuda_product_library() { throw DeviceError(kAbsent); }
std::string cuda_instructions() { throw DeviceError(kAbsent); }

}  // namespace trireme
