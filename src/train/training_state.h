// The state of a training run as logical tensors: every parameter under its name, AdamW's moments
// as optimizer.m.<name> and optimizer.v.<name>; and the counters.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "io/checkpoint/types.h"
#include "src/optim/optimizer_state.h"

namespace trireme {

// What of a run changes from step to step, beside weights and moments; stored in checkpoints.
struct TrainingCounters {
  std::int64_t step = 0;           // steps done, skipped ones included
  std::int64_t updates = 0;        // AdamW updates done
  std::int64_t skipped_steps = 0;  // of the whole run
  std::int64_t skipped_in_a_row = 0;
};

// The blocks that a rank saves, and those that it needs to go on.
std::vector<TensorBlock> blocks_to_save(const ParameterStore& parameters,
                                        const std::vector<StatePiece>& pieces);
std::vector<BlockRequest> blocks_to_load(const ParameterStore& parameters,
                                         const std::vector<StatePiece>& pieces);
// What generating and evaluating need: the parameters alone, all of them.
std::vector<BlockRequest> parameters_to_load(const MasterWeights& masters);

nlohmann::json to_json(const TrainingCounters& counters);
// DataError if a field is missing or of another type.
TrainingCounters counters_from_json(const nlohmann::json& json);

}  // namespace trireme
