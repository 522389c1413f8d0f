// Layout: how a run is spread over its ranks: the grid, the pipeline, which slice of the model each
// rank holds. A pure function of the configuration and the size of the world, the same on all
// ranks.
#pragma once

#include <string>
#include <vector>

#include "src/nn/model_slice.h"
#include "src/parallel/pipeline/balance.h"
#include "src/parallel/pipeline/schedule.h"
#include "src/parallel/process_grid.h"
#include "src/parallel/reproducibility.h"
#include "src/train/run/run_config.h"

namespace trireme {

struct Layout {
  ProcessGrid grid;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  PipelineShape shape;            // of the largest steps
  std::vector<UnitRange> layers;  // residual layers, by virtual stage
  int zero = 0;
  Recompute recompute;
  bool sequence_parallel = false;
  Reproducibility reproducibility = Reproducibility::elastic;

  ModelSlice slice(int rank, int chunk) const;
  // The numbers of the rank's micro-batches within a step of `micro_batches`, rising.
  std::vector<std::int64_t> micro_batches_of(int rank, std::int64_t micro_batches) const;
  // Whether the rank's slices hold the embedding, or the head.
  bool embeds(int rank) const { return grid.pp_rank(rank) == 0; }
  bool has_head(int rank) const { return grid.pp_rank(rank) == grid.pp() - 1; }
};

// ConfigError for what can't be, with the formula, its numbers and what works.
Layout make_layout(const RunConfig& config, int world_size, int ranks_a_host);

// A line that names the degrees, and one a pipeline stage: layers, parameters, share of the work.
std::vector<std::string> describe_layout(const Layout& layout, const RunConfig& config);

}  // namespace trireme
