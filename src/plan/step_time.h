// The time of a training step, as a sum of terms. Pure functions; all times in seconds.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "src/plan/layer_cost.h"

namespace trireme {

struct StepTime {
  double products = 0;  // of the blocks on the busiest stage, forward and backward
  double head = 0;      // output product, loss, embedding and a teacher's forward pass there
  double attention = 0;
  double kernels = 0;     // that only move data
  double recompute = 0;   // all that is computed a second time
  double tensor = 0;      // operations of tp
  double accumulate = 0;  // adding gradients of micro-batches
  double transfer = 0;    // between pipeline stages, as far as a stage waits for it
  double bubble = 0;      // what the schedule leaves idle on the busiest stage
  double gradients = 0;   // reduction among replicas, as far as backward does not hide it
  double parameters = 0;  // gathering what ZeRO has divided, as far as it is not hidden
  double optimizer = 0;
  double checkpoint = 0;  // stall per step

  static constexpr int kTerms = 13;
  std::array<double, kTerms> terms() const;
  static const std::array<const char*, kTerms>& names();
  double total() const;
  // Returns the part in which devices wait: for other stages, or for data that nothing hides.
  double waiting() const { return tensor + transfer + bubble + gradients + parameters; }
};

// BubbleMethod says how the idle time of a pipeline is found.
enum class BubbleMethod : std::uint8_t {
  simulated,  // by running the schedule that trains (src/parallel/pipeline)
  formula,    // (p-1)/v times what a stage needs for a micro-batch, to rank thousands of layouts
};

// The parameters of the rank that holds most, without norms and biases.
double rank_parameters(const PlanModel& model, const PlanLayout& layout);

// checkpoint_seconds: stall of one save, and steps between saves; 0 for none.
struct CheckpointStall {
  double seconds = 0;
  double every_steps = 0;
};

// Precondition: the layout divides the model (layout_fault()).
StepTime step_time(const PlanWork& work, const PlanLayout& layout, BubbleMethod method,
                   const CheckpointStall& stall = {});

// Returns the formulas of each term with the numbers of this layout put in, one per line.
std::vector<std::string> explain_step(const PlanWork& work, const PlanLayout& layout,
                                      const CheckpointStall& stall = {});

}  // namespace trireme
