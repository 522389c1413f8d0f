// Measures the machine's matrix product rate, to which a step's speed is compared.
#pragma once

#include <limits>

#include "src/compute/device_context.h"

namespace trireme {

// ProductRate is the FLOP/s of products of size x size x size elements, computed by the kernel
// table's matmul.
struct ProductRate {
  double median = 0;  // over the timed calls
  double best = 0;
};

// Times `rounds` calls after one for warm-up; fewer, but at least three, once they have taken
// `enough` seconds. Waits for the context's stream. pool: memory of the context's device.
ProductRate measure_product_rate(DeviceContext& context, Pool& pool, DType dtype, std::int64_t size,
                                 int rounds,
                                 double enough = std::numeric_limits<double>::infinity());

}  // namespace trireme
