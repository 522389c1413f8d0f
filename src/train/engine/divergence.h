// Decides what follows a step whose loss or gradient norm is not finite or is a spike. The decision
// comes after the gradient of the global batch is known and before the optimizer changes anything,
// and depends on values that are the same on all ranks, so that all ranks decide alike in the same
// step. Pure functions. docs/decisions/0017-rewind-and-replay.md gives the reasons.
#pragma once

#include <string>

#include "src/train/engine/training_state.h"
#include "src/train/run/run_config.h"

namespace trireme {

enum class Response {
  update,       // the optimizer updates as usual
  warn,         // it updates, and a warning is logged
  skip,         // weights and moments stay as they are; the run continues with the next batch
  lower_scale,  // the same, with a lower loss scale (loss_scale.h); no sign of divergence
  rewind,       // the run goes back to a checkpoint and leaves out the data of the steps since
  stop,         // the run ends (exit code 3)
};

struct Judgement {
  Response response = Response::update;
  SpikeScores scores;
  bool finite = true;
  // For example "loss 9.1, 31.2 deviations above the median; gradient norm 0.8", or "".
  std::string what;

  bool updates() const { return response == Response::update || response == Response::warn; }
  // Returns whether neither the update nor a next step follows, so that the training loop ends
  // here.
  bool breaks_off() const { return response == Response::rewind || response == Response::stop; }
};

// Judges the step that runs on `counters`.
Judgement judge(const DivergenceConfig& config, const TrainingCounters& counters, double loss,
                double grad_norm);
// Updates the counters after a step that does not break off. If skipped_in_a_row then exceeds
// train.max_skipped_steps, the caller has to end the run.
void note_judged(const DivergenceConfig& config, const Judgement& judgement, double loss,
                 double grad_norm, TrainingCounters& counters);

// Returns what follows from a judgement that is not a plain update, for the log. counters: those
// after the step. most_skipped: train.max_skipped_steps.
std::string consequence(const Judgement& judgement, std::int64_t step,
                        const TrainingCounters& counters, std::int64_t most_skipped);

}  // namespace trireme
