// The mirrored kernels are the CUDA table for views of the host's memory: each entry copies them to
// the device of its stream, calls the CUDA table's entry, waits, and copies the results back. They
// serve to compare CUDA kernels with the reference.
#pragma once

#include "src/kernels/cuda_kernels.h"
#include "src/kernels/kernels.h"
#include "src/kernels/mirrored/mirror.h"

namespace trireme {

// Entries throw DeviceError if the kernel failed, wrote outside its views, or changed what it
// should only read. The table exists in every program; its entries need a CUDA device.
const Kernels& mirrored_kernels(Placement placement);
// Same, for the table whose attention cuDNN computes if asked for.
const Kernels& mirrored_kernels(Placement placement, CudaAttention attention);

}  // namespace trireme
