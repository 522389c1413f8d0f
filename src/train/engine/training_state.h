// Describes the state of a training run as logical tensors (every parameter under its name, the
// optimizer's state as optimizer.m.<name> and the like) and counters. Plain values and pure
// functions.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/types.h"
#include "io/data/batch_schedule.h"
#include "src/optim/optimizer_state.h"
#include "src/train/engine/spike_detector.h"
#include "src/train/engine/validation_history.h"

namespace trireme {

// DataWindow is the global batches that a run left out when it went back to `step`: those that the
// step after it would have had, and the ones that follow.
struct DataWindow {
  std::int64_t step = 0;
  std::int64_t first = 0;  // position in the data order, in global batches
  std::int64_t count = 0;  // number of global batches
  friend bool operator==(const DataWindow&, const DataWindow&) = default;
};

// LossWindow sums the losses of the steps since the last logged one.
struct LossWindow {
  double sum = 0;  // of the finite ones
  std::int64_t steps = 0;

  void add(double loss);
  double mean() const;  // NaN without steps
  friend bool operator==(const LossWindow&, const LossWindow&) = default;
};

// SourceWindow sums the losses of one source's samples since the last logged step.
struct SourceWindow {
  double sum = 0;  // of the token losses in the samples whose loss was finite
  std::int64_t samples = 0;

  void add(double loss_of_sample);
  double mean(std::int64_t tokens_per_sample) const;  // NaN without samples
  friend bool operator==(const SourceWindow&, const SourceWindow&) = default;
};

// LossScale is the state of dynamic loss scaling (loss_scale.h).
struct LossScale {
  double scale = 0;            // factor of the next step's loss, a power of two; 0 before any step
  std::int64_t steps = 0;      // since the scale changed, without an overflow
  std::int64_t overflows = 0;  // steps skipped to lower the scale, in the whole run
  friend bool operator==(const LossScale&, const LossScale&) = default;
};

// Fp8History holds the largest magnitudes of the operands of products in 8 bits, of the latest
// steps and the newest last: by the name of the weight, and by Fp8Products::Role.
using Fp8History = std::map<std::string, std::array<std::vector<float>, 3>>;

// TrainingCounters is the state of a run that changes from step to step, apart from weights and
// moments. It is stored in checkpoints. Older ones lack the fields below the line, which are then
// empty.
struct TrainingCounters {
  std::int64_t step = 0;           // steps done, including skipped ones
  std::int64_t updates = 0;        // optimizer updates done
  std::int64_t skipped_steps = 0;  // in the whole run
  std::int64_t skipped_in_a_row = 0;
  // ----
  std::int64_t rewinds = 0;               // in the whole run
  std::vector<DataWindow> left_out = {};  // in the order of the rewinds
  SpikeHistory history = {};  // of the steps that were kept, without those undone by a rewind
  LossWindow loss_window = {};
  std::vector<SourceWindow> source_windows = {};  // of each source of a mixture
  ValidationHistory validation = {};
  LossScale loss_scale = {};
  Fp8History fp8 = {};

  // Returns the position of the next step in the data order, in global batches: those that the
  // steps used, and those left out.
  std::int64_t batches() const;
  // Returns the samples of the data order that all steps done have used, without those left out, as
  // ranges [first, end).
  std::vector<std::pair<std::int64_t, std::int64_t>> used_samples(
      const BatchSchedule& schedule) const;
  // Returns how many these are.
  std::int64_t samples(const BatchSchedule& schedule) const;
  // Begins the windows of the next logged step.
  void clear_windows() {
    loss_window = {};
    source_windows.clear();
  }
};

// Sets up `now`, the state of the checkpoint to which a run rewinds. `failed` is its state before
// the step that failed. Leaves out the batches of all steps after now's up to and including that
// one, and `more` batches.
void leave_out(TrainingCounters& now, const TrainingCounters& failed, std::int64_t more);
// Returns whether a run at `now` has been at `earlier`, so that it can go back there.
bool has_passed(const TrainingCounters& now, const TrainingCounters& earlier);

// Appends to `blocks` the blocks of the pieces that a rank saves or loads.
void add_blocks(const ParameterStore& parameters, const std::vector<StatePiece>& pieces,
                std::vector<TensorBlock>& blocks);
// Weights names the weights that generation and evaluation use: those after the last step, or the
// optimizer's moving average of them.
enum class Weights : std::uint8_t { latest, average };
// Returns the blocks of all parameters, without optimizer state. masters: holds the whole store.
std::vector<TensorBlock> parameters_to_load(const MasterWeights& masters, Weights which);

nlohmann::json to_json(const TrainingCounters& counters);
// Writes the counters to the part of a manifest that is reserved for the run: "counters", and
// "keep_steps" for the steps that retention must keep (io/checkpoint/keep_steps.h).
void put_counters(const TrainingCounters& counters, nlohmann::json& extra);
// Throws DataError if a field is missing, of another type, or impossible.
TrainingCounters counters_from_json(const nlohmann::json& json);
// Returns the counters in a checkpoint. Throws DataError also if they are of another step.
TrainingCounters counters_of(const CheckpointMeta& meta);

}  // namespace trireme
