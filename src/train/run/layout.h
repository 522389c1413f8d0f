// Layout says how a run is divided among its ranks: the grid, the pipeline, and the slice of the
// model that each rank holds. A pure function of the configuration and the size of the world, the
// same on all ranks.
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
  PipelineShape shape;            // in the largest steps
  std::vector<UnitRange> layers;  // by virtual stage; one unit is an attention or an MLP
  int zero = 0;
  Recompute recompute;
  bool sequence_parallel = false;
  Reproducibility reproducibility = Reproducibility::elastic;

  ModelSlice slice(int rank, int chunk) const;
  // Returns the numbers of the rank's micro-batches in a step of `micro_batches`, in ascending
  // order.
  std::vector<std::int64_t> micro_batches_of(int rank, std::int64_t micro_batches) const;
  // Return whether the rank's slices contain the embedding or the head.
  bool embeds(int rank) const { return grid.pp_rank(rank) == 0; }
  bool has_head(int rank) const { return grid.pp_rank(rank) == grid.pp() - 1; }
};

// Throws ConfigError for an impossible layout, with the formula, its numbers and what would work.
Layout make_layout(const RunConfig& config, int world_size, int ranks_per_host);

// Returns a line with the degrees and, with a pipeline, a table of its stages: ranks, share of the
// work, layers.
std::vector<std::string> describe_layout(const Layout& layout, const RunConfig& config);

}  // namespace trireme
