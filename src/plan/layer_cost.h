// The time that one rank needs for one micro-batch in a transformer block and in the head, by part.
// Pure functions; all times in seconds.
#pragma once

#include <vector>

#include "src/plan/plan_layout.h"
#include "src/plan/rates.h"

namespace trireme {

// PlanWork is what a rank has to compute, and with what.
struct PlanWork {
  const PlanModel& model;
  const Cluster& cluster;
  const Software& software;
  PlanPrecision precision = PlanPrecision::bf16;
  const PlanModel* teacher = nullptr;  // with distillation: the model that the last stage evaluates
};

struct PassCost {
  double products = 0;   // of the linear layers
  double attention = 0;  // scores, softmax and weighted sums
  double kernels = 0;    // norms, activations, residuals: what only moves data
  double tensor = 0;     // operations of tp, the part that computing does not hide
  double total() const { return products + attention + kernels + tensor; }
};

struct BlockCost {
  PassCost forward;
  PassCost backward;
  PassCost repeated;  // what recomputation adds to backward
};

struct HeadCost {
  PassCost forward;  // the output product and the loss
  PassCost backward;
  double embedding_forward = 0;
  double embedding_backward = 0;
};

// ProductCost is a product of a block's forward pass, for --explain.
struct ProductCost {
  const char* name;
  PlannedProduct shape;
  double forward = 0;
  double backward = 0;  // of both gradients
};
std::vector<ProductCost> block_products(const PlanWork& work, const PlanLayout& layout);

BlockCost block_cost(const PlanWork& work, const PlanLayout& layout);
HeadCost head_cost(const PlanWork& work, const PlanLayout& layout);
// Returns the time of the teacher's forward pass, which is not divided among ranks; 0 without one.
double teacher_seconds(const PlanWork& work, const PlanLayout& layout);

// Returns the group of tp ranks, which are neighbours.
RingGroup tensor_group(const Cluster& cluster, const PlanLayout& layout);
// Returns the group of dp ranks, of which a node holds as many as tp leaves room for.
RingGroup replica_group(const Cluster& cluster, const PlanLayout& layout);

}  // namespace trireme
