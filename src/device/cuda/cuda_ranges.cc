#include <string>

#include "src/device/cuda_device.h"

// Some toolkits come without NVTX, which has headers only.
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

namespace trireme::cuda {

void push_range(std::string_view name) { (void)nvtxRangePushA(std::string(name).c_str()); }

void pop_range() { (void)nvtxRangePop(); }

}  // namespace trireme::cuda
#else
namespace trireme::cuda {

void push_range(std::string_view) {}

void pop_range() {}

}  // namespace trireme::cuda
#endif
