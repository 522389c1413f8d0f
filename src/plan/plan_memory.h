// The memory that a rank takes, from formulas, to rank thousands of layouts. What a run itself will
// take is counted by its engine (src/train/memory), not by these formulas. Pure functions; bytes.
#pragma once

#include "src/plan/layer_cost.h"

namespace trireme {

struct PlannedMemory {
  double parameters = 0;  // working copies and masters
  double gradients = 0;
  double optimizer = 0;
  double activations = 0;
  double communication = 0;  // buffers; ZeRO 3: gathered parameters
  double snapshot = 0;       // copies for checkpoints, where the host computes
  double reserved = 0;       // by context and libraries
  double total() const {
    return parameters + gradients + optimizer + activations + communication + snapshot + reserved;
  }
};

// Returns the memory of the rank that needs most: one of the first pipeline stage, where most
// micro-batches are in flight, with the embedding, or of the last one, with the logits.
PlannedMemory rank_memory(const PlanWork& work, const PlanLayout& layout);

}  // namespace trireme
