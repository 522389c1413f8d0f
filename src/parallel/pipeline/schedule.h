// Pipeline schedules as data: what each stage computes, and in which order, in one step. Pure
// functions. A model is cut into stages x chunks virtual stages; rank `stage` holds the chunks
// 0..chunks-1, and virtual stage chunk * stages + stage is the model's n-th piece (Narayanan et
// al., 2021, "Efficient large-scale language model training on GPU clusters", 2.2). In every
// schedule the backwards of a chunk come in rising order of the micro-batches, as the tree of
// gradients needs them (src/parallel/reduction_tree.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

enum class PipelineSchedule : std::uint8_t {
  gpipe,        // all forwards, then all backwards (Huang et al., 2019)
  one_f_one_b,  // "1f1b": a backward as soon as there is one (Narayanan et al., 2019)
  interleaved,  // 1f1b over several chunks a rank (Narayanan et al., 2021)
  zero_bubble,  // 1f1b that puts the weights' gradients off to where it would idle (Qi et al.,
                // 2023)
};

struct PipelineShape {
  int stages = 1;
  int chunks = 1;                  // virtual stages a rank
  std::int64_t micro_batches = 1;  // a replica and step
  // The output matrix is the token embedding, whose gradient the last virtual stage owns: the first
  // one sends it the gradient of what it embedded.
  bool tied = false;

  int virtual_stages() const { return stages * chunks; }
  int virtual_stage(int stage, int chunk) const { return chunk * stages + stage; }
  friend bool operator==(const PipelineShape&, const PipelineShape&) = default;
};

struct PipelineStep {
  enum class Kind : std::uint8_t {
    forward,
    backward,         // both of the next two
    backward_input,   // the gradient of the input
    backward_weight,  // the gradients of the weights
    tie,              // the embedding's part of the tied matrix's gradient; the last stage's
  };
  Kind kind = Kind::forward;
  int chunk = 0;
  std::int64_t micro_batch = 0;  // 0..micro_batches-1 of the replica
  friend bool operator==(const PipelineStep&, const PipelineStep&) = default;
};

// By stage.
using PipelineSteps = std::vector<std::vector<PipelineStep>>;

// "gpipe", "1f1b", "interleaved", "zero_bubble".
std::string_view name_of(PipelineSchedule schedule);
std::vector<std::string> pipeline_schedule_names();
// ConfigError for a name not listed there.
PipelineSchedule parse_pipeline_schedule(std::string_view name);
// "forward", "backward", "input gradient", "weight gradient", "tie".
std::string_view name_of(PipelineStep::Kind kind);
// "forward of micro-batch 3, chunk 0"
std::string describe(const PipelineStep& step);

// ConfigError, with the formula, its numbers and what works, for a shape that has no such schedule.
void check_pipeline(PipelineSchedule schedule, const PipelineShape& shape);

// One stage's steps; all stages'. ConfigError as check_pipeline().
std::vector<PipelineStep> make_schedule(PipelineSchedule schedule, const PipelineShape& shape,
                                        int stage);
PipelineSteps make_schedules(PipelineSchedule schedule, const PipelineShape& shape);

// The forwards alone, for passes that train nothing: any number of micro-batches.
std::vector<PipelineStep> make_forward_schedule(const PipelineShape& shape);

}  // namespace trireme
