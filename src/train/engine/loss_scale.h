// Dynamic loss scaling for train.precision: fp16, whose smallest number is 2^-24 (Micikevicius et
// al., Mixed Precision Training, 2018, section 3.2). The loss of each step is multiplied by a power
// of two, so that its gradients do not vanish, and the optimizer divides them by it again. Both are
// exact. If a gradient overflows, the step is skipped and the scale halved; after growth_interval
// steps in a row without overflow it is doubled. All of this depends only on values that are the
// same on all ranks: the ranks scale and skip alike, and a resumed run as one that never stopped.
// Pure functions.
#pragma once

#include <optional>

#include "src/train/engine/divergence.h"

namespace trireme {

// Returns the factor of the next step's loss; 1 unless the precision is fp16.
double loss_scale(const TrainConfig& config, const TrainingCounters& counters);

// Judges a step whose gradient overflowed, so that a lower scale may help. Returns nothing for all
// other steps, which judge() decides: their gradient is finite, their loss is not, or the scale
// cannot fall any further.
std::optional<Judgement> judge_overflow(const TrainConfig& config, const TrainingCounters& counters,
                                        double loss, double grad_norm);

// Sets the scale of the next step, after a step that does not break off.
void adapt_loss_scale(const TrainConfig& config, const Judgement& judgement, bool finite_gradient,
                      TrainingCounters& counters);

// Returns " at loss scale 1" for messages, or "" unless the precision is fp16.
std::string at_loss_scale(const TrainConfig& config, const TrainingCounters& counters);

}  // namespace trireme
