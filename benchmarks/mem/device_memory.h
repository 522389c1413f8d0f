// Measures the memory of a CUDA device for `trireme bench mem --device` and `plan calibrate`: with
// copies, as its driver makes them, and with sums by the kernels of training. Bytes are counted as
// in STREAM: all that an operation reads and writes.
#pragma once

#include <cstdint>
#include <string>

#include "benchmarks/mem/mem.h"
#include "src/compute/device_context.h"

namespace trireme {

struct DeviceMemoryOptions {
  // The size of each of two arrays; 0 stands for 1 GiB, or an eighth of the free memory if that is
  // less.
  std::int64_t bytes = 0;
  double duration = 0;  // seconds of both kernels together; 0 until each rate is known to 5 %
};

// Measures the device of the context, on which this rank alone computes. The results are entries
// {name: mem_device, params, metrics, measurement, samples}, one for `copy` and one for `add`.
// Throws ConfigError if the arrays do not fit.
BenchMemResult bench_device_memory(DeviceContext& context, const DeviceMemoryOptions& options);

}  // namespace trireme
