// Makes pipeline schedules as data: what each stage computes in one step, in order. Pure functions.
// A model is cut into stages x chunks virtual stages. Rank `stage` holds chunks 0..chunks-1, and
// its chunk c is virtual stage c * stages + stage of the model (Narayanan et al., 2021, "Efficient
// large-scale language model training on GPU clusters", 2.2). In every schedule, the backwards of a
// chunk run in rising order of the micro-batches, as the tree of gradients requires
// (src/parallel/reduction_tree.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

enum class PipelineSchedule : std::uint8_t {
  gpipe,        // all forwards, then all backwards (Huang et al., 2019)
  one_f_one_b,  // "1f1b": each backward as early as possible (Narayanan et al., 2019)
  interleaved,  // 1f1b with several chunks per rank (Narayanan et al., 2021)
  zero_bubble,  // 1f1b with weight gradients in its idle times (Qi et al., 2023)
};

struct PipelineShape {
  int stages = 1;
  int chunks = 1;                  // virtual stages per rank
  std::int64_t micro_batches = 1;  // per replica and step
  // Whether the output matrix is the token embedding. The last virtual stage owns its gradient, and
  // the first one sends it the gradient of the embedded tokens.
  bool tied = false;

  int virtual_stages() const { return stages * chunks; }
  int virtual_stage(int stage, int chunk) const { return chunk * stages + stage; }
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

struct PipelineStep {
  enum class Kind : std::uint8_t {
    forward,
    backward,         // both of the following
    backward_input,   // the gradient of the input
    backward_weight,  // the gradients of the weights
    tie,              // the embedding's part of the tied matrix's gradient; last stage only
  };
  Kind kind = Kind::forward;
  int chunk = 0;
  std::int64_t micro_batch = 0;  // 0..micro_batches-1, within the replica
  friend bool operator==(const PipelineStep&, const PipelineStep&) = default;
};

// PipelineSteps holds the steps of all stages, by stage.
using PipelineSteps = std::vector<std::vector<PipelineStep>>;

// Returns "gpipe", "1f1b", "interleaved" or "zero_bubble".
std::string_view name_of(PipelineSchedule schedule);
std::vector<std::string> pipeline_schedule_names();
// Throws ConfigError for any other name.
PipelineSchedule parse_pipeline_schedule(std::string_view name);
// Returns "forward", "backward", "input gradient", "weight gradient" or "tie".
std::string_view name_of(PipelineStep::Kind kind);
// Returns for example "forward of micro-batch 3, chunk 0".
std::string describe(const PipelineStep& step);

// Throws ConfigError, with the formula, its numbers and what works, if the schedule does not allow
// the shape.
void check_pipeline(PipelineSchedule schedule, const PipelineShape& shape);

// Return the steps of one stage, and of all stages. Throw ConfigError as check_pipeline() does.
std::vector<PipelineStep> make_schedule(PipelineSchedule schedule, const PipelineShape& shape,
                                        int stage);
PipelineSteps make_schedules(PipelineSchedule schedule, const PipelineShape& shape);

// Returns the forwards alone, for passes without training; allows any number of micro-batches.
std::vector<PipelineStep> make_forward_schedule(const PipelineShape& shape);

}  // namespace trireme
