// Times of single pieces of work on a cluster: products, kernels that move data, and collective
// operations. Pure functions; all times in seconds.
#pragma once

#include <cstdint>

#include "src/plan/cluster_file.h"
#include "src/plan/plan_model.h"

namespace trireme {

// PlannedProduct is `count` products [M,K] x [K,N] that one kernel computes.
struct PlannedProduct {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t count = 1;
};

// Returns the peak rate of products in FLOP/s. A cluster without fp8 products computes in bf16.
double peak_flops(const Cluster& cluster, PlanPrecision precision);

// Returns the bytes of an activation's element: those of fp8 are products' operands alone.
constexpr double element_bytes(PlanPrecision precision) {
  return precision == PlanPrecision::fp32 ? 4 : 2;
}

// Returns the time of a product: the root of the sum of the squares of the times of computing and
// of moving its operands, which overlap except where both take about as long. A device with compute
// units deals tiles to them in waves, and the last wave takes as long as a full one; the best of
// several tile sizes counts. Operands that are not aligned to 8 elements cannot use the units for
// products at all (NVIDIA, "Matrix Multiplication Background", tensor core requirements).
double product_seconds(const Cluster& cluster, PlanPrecision precision,
                       const PlannedProduct& shape);

// Returns the time of a kernel that moves `bytes` bytes.
double kernel_seconds(const Cluster& cluster, double bytes);

// RingGroup is `ranks` ranks of which `per_node` share a node.
struct RingGroup {
  std::int64_t ranks = 1;
  std::int64_t per_node = 1;
};

// Returns the bytes per second that each member of a group moves in a ring. All other devices of
// the node use the network at the same time, each with its own group.
double ring_bytes_per_second(const Cluster& cluster, const RingGroup& group);

// Returns the time of a reduce-scatter or all-gather of `bytes` in all (rounds 1), or of an
// all-reduce (rounds 2): rounds x ((n-1)/n x bytes / rate + log2(n) x latency).
double ring_seconds(const Cluster& cluster, const RingGroup& group, double bytes, int rounds);

// Returns the time of a message from one pipeline stage to the next.
double message_seconds(const Cluster& cluster, bool within_node, double bytes);

}  // namespace trireme
