// The self-check of the numbers: each kernel that trains runs once, with the widths and the threads
// of the run, and its result is compared with that of the reference table. It finds a processor
// that computes wrong numbers, a library that does, and threads that did not turn up.
//
// The work is bounded (docs/reproducibility.md): few rows, products of at most 16 MFLOP and 256 Ki
// weights, two heads of attention. Of a product, the reference computes a grid of elements, and
// every element must have been written.
#pragma once

#include "src/kernels/kernels.h"
#include "src/train/numerics/kernel_shapes.h"

namespace trireme {

// DeviceError that names the host, the kernel and the figures. Nothing is to be checked of the
// reference itself. Uses the calling thread and the stream's threads; some MiB of passing memory.
void check_kernels(const Kernels& kernels, Stream& stream, const KernelShapes& shapes);

}  // namespace trireme
