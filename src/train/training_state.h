// The state of a training run as logical tensors: every parameter under its name, AdamW's moments
// as optimizer.m.<name> and optimizer.v.<name>; and the counters.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "io/checkpoint/types.h"
#include "src/optim/adamw.h"

namespace trireme {

// What of a run changes from step to step, beside weights and moments; stored in checkpoints.
struct TrainingCounters {
  std::int64_t step = 0;           // steps done, skipped ones included
  std::int64_t updates = 0;        // AdamW updates done
  std::int64_t skipped_steps = 0;  // of the whole run
  std::int64_t skipped_in_a_row = 0;
};

// What rank `rank` of `ranks` replicas saves: an even share of all elements, cut anywhere, so that
// every replica writes alike and the blocks of all tile each tensor once.
std::vector<TensorBlock> blocks_to_save(const ParameterStore& parameters,
                                        const AdamWOptimizer& optimizer, int rank, int ranks);
// What a replica needs to go on: everything.
std::vector<BlockRequest> blocks_to_load(const ParameterStore& parameters,
                                         const AdamWOptimizer& optimizer);
// What generating and evaluating need: the parameters alone.
std::vector<BlockRequest> parameters_to_load(const ParameterStore& parameters);

nlohmann::json to_json(const TrainingCounters& counters);
// DataError if a field is missing or of another type.
TrainingCounters counters_from_json(const nlohmann::json& json);

}  // namespace trireme
