// The self-check of the numbers: each kernel that trains runs once, with the widths and the threads
// of the run, and its result is compared with that of the reference table. It finds a processor
// that computes wrong numbers, a library that does, and threads that did not turn up.
//
// The work is bounded (docs/reproducibility.md): few rows, products of at most 16 MFLOP and 256 Ki
// weights, two heads of attention. Of a product, the reference computes a grid of elements, and
// every element must have been written.
#pragma once

#include "src/compute/device_context.h"
#include "src/train/numerics/kernel_shapes.h"

namespace trireme {

// Throws DeviceError that names the host, the kernel and the figures. Does nothing if the context
// uses the reference table itself. Uses the context's stream, and some MiB of memory that it gives
// back to the system.
void check_kernels(DeviceContext& context, const KernelShapes& shapes);

}  // namespace trireme
