// The machine's own ceilings, measured: what a step's speed is compared with.
#pragma once

#include <limits>

#include "src/compute/device_context.h"

namespace trireme {

// FLOP/s of a square product, size x size x size, by the table's own matmul.
struct ProductRate {
  double median = 0;  // of the timed calls
  double best = 0;
};

// Times `rounds` calls after one that warms up, or three or more that together take `enough`
// seconds. pool: memory of the context's device.
ProductRate measure_product_rate(DeviceContext& context, Pool& pool, DType dtype, std::int64_t size,
                                 int rounds,
                                 double enough = std::numeric_limits<double>::infinity());

}  // namespace trireme
