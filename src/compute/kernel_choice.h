// Chooses the kernel table of a device. The tables are owned by the program and read-only.
#pragma once

#include <string_view>

#include "src/kernels/kernels.h"

namespace trireme {

// Returns the best table for the device. On the CPU, the environment variable TRIREME_KERNELS =
// reference|baseline|avx2|avx512 overrides the choice. Throws ConfigError for another word, for
// an instruction set that this processor lacks, and for CUDA if the program is built without it.
const Kernels& kernels_for(Device device);
// Returns the CPU's table of one of these names; for tests, benchmarks and the self-check.
const Kernels& kernels_named(std::string_view name);

}  // namespace trireme
