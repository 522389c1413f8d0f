// This file is linked if the program is built without CUDA.
#include "src/base/error.h"
#include "src/kernels/cuda_kernels.h"

namespace trireme {

const Kernels& cuda_kernels() {
  throw DeviceError(
      "built without CUDA kernels: configure with the preset 'cuda', or train on cpu");
}

}  // namespace trireme
