// What follows a step whose loss or gradient norm is not finite, or stands out as a spike. Decided
// after the gradient of the global batch is known and before the optimizer touches anything, by
// values that are the same on all ranks: all decide alike in the same step. Pure functions.
// docs/decisions/0017 says why it is done so.
#pragma once

#include <string>

#include "src/train/engine/training_state.h"
#include "src/train/run/run_config.h"

namespace trireme {

enum class Response {
  update,  // nothing: the optimizer's step is made
  warn,    // is made, and told
  skip,    // weights and moments stay as they are; the run goes on with the next batch
  rewind,  // the run goes back to a checkpoint and leaves out the data that led here
  stop,    // the run ends (3)
};

struct Judgement {
  Response response = Response::update;
  SpikeScores scores;
  bool finite = true;
  // "loss 9.1 (31.2 deviations above the median of 128 steps), gradient norm ..."
  std::string what;

  bool updates() const { return response == Response::update || response == Response::warn; }
  // Neither an update nor the step after it: the loop ends here.
  bool breaks_off() const { return response == Response::rewind || response == Response::stop; }
};

// Of the step that runs on `counters`.
Judgement judge(const DivergenceConfig& config, const TrainingCounters& counters, double loss,
                double grad_norm);
// What a step that does not break off leaves in the counters; a skipped one more in a row than
// train.max_skipped_steps is for the caller to end the run.
void note_judged(const DivergenceConfig& config, const Judgement& judgement, double loss,
                 double grad_norm, TrainingCounters& counters);

}  // namespace trireme
