// Declares the kernel table of DeviceKind::counting. Every entry returns at once and touches
// nothing, so that a step takes the memory of a real one without its arithmetic. Read-only.
#pragma once

#include "src/kernels/kernels.h"

namespace trireme {

const Kernels& no_kernels();

}  // namespace trireme
