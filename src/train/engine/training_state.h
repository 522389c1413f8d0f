// The state of a training run as logical tensors: every parameter under its name, the optimizer's
// state as optimizer.m.<name> and the like; and the counters.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/types.h"
#include "io/data/batch_schedule.h"
#include "src/optim/optimizer_state.h"
#include "src/train/engine/spike_detector.h"
#include "src/train/engine/validation_history.h"

namespace trireme {

// Global batches that a run has left out when it went back to `step`: the data that step would have
// had, and what follows it.
struct DataWindow {
  std::int64_t step = 0;
  std::int64_t first = 0;  // of the data order, in global batches
  std::int64_t count = 0;  // global batches
  friend bool operator==(const DataWindow&, const DataWindow&) = default;
};

// The losses of the steps since the last logged one.
struct LossWindow {
  double sum = 0;  // of those that are finite
  std::int64_t steps = 0;

  void add(double loss);
  double mean() const;  // NaN of none
  friend bool operator==(const LossWindow&, const LossWindow&) = default;
};

// What of a run changes from step to step, beside weights and moments; stored in checkpoints. The
// fields below the line are missing in older ones, and then empty.
struct TrainingCounters {
  std::int64_t step = 0;           // steps done, skipped ones included
  std::int64_t updates = 0;        // optimizer updates done
  std::int64_t skipped_steps = 0;  // of the whole run
  std::int64_t skipped_in_a_row = 0;
  // ----
  std::int64_t rewinds = 0;               // of the whole run
  std::vector<DataWindow> left_out = {};  // in the order of time
  SpikeHistory history = {};              // of this line of steps
  LossWindow loss_window = {};
  ValidationHistory validation = {};

  // Global batches of the data order that come before the next step's, left out or not.
  std::int64_t batches() const;
  // Sequences of the batches of all steps done; what was left out does not count.
  std::int64_t samples(const BatchSchedule& schedule) const;
};

// `now` stands where a run goes back to from the step after `failed`: leaves the batches of all
// steps from now's to that one out, and `more`.
void leave_out(TrainingCounters& now, const TrainingCounters& failed, std::int64_t more);
// Whether a run that stands at `now` has passed `earlier`: only then is that a place to go back to.
bool has_passed(const TrainingCounters& now, const TrainingCounters& earlier);

// Appends the blocks of the pieces, which a rank saves or loads.
void add_blocks(const ParameterStore& parameters, const std::vector<StatePiece>& pieces,
                std::vector<TensorBlock>& blocks);
// What generating and evaluating need: the parameters alone, all of them, as the last step left
// them or as the optimizer's moving average has them.
enum class Weights : std::uint8_t { latest, average };
std::vector<TensorBlock> parameters_to_load(const MasterWeights& masters, Weights which);

nlohmann::json to_json(const TrainingCounters& counters);
// Writes the counters into the part of a manifest that is free for the run: "counters", and
// "keep_steps" for what retention has to keep (io/checkpoint/store.h).
void put_counters(const TrainingCounters& counters, nlohmann::json& extra);
// DataError if a field is missing, of another type, or impossible.
TrainingCounters counters_from_json(const nlohmann::json& json);
// Those of a checkpoint; DataError also if they stand at another step than the checkpoint.
TrainingCounters counters_of(const CheckpointMeta& meta);

}  // namespace trireme
