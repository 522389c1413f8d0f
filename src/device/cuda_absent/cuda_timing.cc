#include "src/device/cuda_timing.h"

#include "src/base/error.h"

namespace trireme::cuda {

double device_seconds(Stream&, const std::function<void()>&) {
  throw ConfigError("this program was built without CUDA: configure with the preset 'cuda'");
}

}  // namespace trireme::cuda
