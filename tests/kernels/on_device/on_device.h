// on_device() is the CUDA table for views of the host's memory: each entry copies them to the
// device, calls the CUDA table's entry, waits, and copies back.
#pragma once

#include "src/kernels/kernels.h"
#include "tests/kernels/on_device/mirror.h"

namespace trireme::testing {

const Kernels& on_device(Placement placement);

}  // namespace trireme::testing
