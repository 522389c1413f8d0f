// Checks the kernels before training: each kernel that training uses runs once, with the widths and
// threads of the run, and its result is compared with that of the reference table. The check
// detects processors and libraries that compute wrong numbers, and threads that did not run.
//
// The work is bounded (docs/reproducibility.md): few rows, products of at most 16 MFLOP and 256 Ki
// weights, two heads of attention. The reference computes only a grid of a product's elements, but
// every element must have been written.
#pragma once

#include "src/compute/device_context.h"
#include "src/train/numerics/kernel_shapes.h"

namespace trireme {

// Throws DeviceError that names the host, the kernel and the values. Does nothing if the context
// uses the reference table itself. Uses the context's stream, and some MiB of memory that it
// returns to the system.
void check_kernels(DeviceContext& context, const KernelShapes& shapes);

}  // namespace trireme
