#include "src/train/run_evaluations.h"

#include <limits>

#include "src/base/fault.h"
#include "src/base/units.h"
#include "src/train/watch/replica_guard.h"

namespace trireme {

bool RunEvaluations::due() const {
  const TrainConfig& config = p_.config.train;
  const std::int64_t step = p_.counters.step;
  const bool periodic = config.eval_every > 0 && step % config.eval_every == 0;
  // A run that ends because it skipped too many steps is not worth an evaluation.
  return !p_.config.data.validation.empty() && (periodic || step == config.steps) &&
         p_.counters.skipped_in_a_row <= config.max_skipped_steps;
}

// A failed evaluation does not end the run.
void RunEvaluations::evaluate(StepMetrics& metrics) {
  p_.enter("evaluate", p_.config.deadline.evaluate);
  const SpanTimer span(p_.engine.spans(), SpanKind::evaluation, "evaluation");
  fault("step.evaluate");
  const std::vector<double> losses = p_.validation_losses([this](const std::string& what) {
    p_.host.log.warning(
        fmt::format("step {}: the evaluation failed, training continues and val_loss is null: {}",
                    p_.counters.step, what));
  });
  metrics.val_loss = losses.empty() ? std::numeric_limits<double>::quiet_NaN() : losses.front();
  const std::vector<EvaluationSet>& sets = p_.config.data.validation;
  for (std::size_t i = 0; losses.size() > 1 && i < losses.size(); ++i) {
    metrics.val_losses.push_back({sets[i].name, losses[i]});
  }
}

// Saves the step if it is now among the best and was not saved yet.
void RunEvaluations::settle(double loss) {
  ValidationHistory& history = p_.counters.validation;
  note_evaluation(history, {p_.counters.step, loss}, p_.config.checkpoint.keep_best,
                  p_.config.train.early_stop_min_delta);
  if (history.is_best(p_.counters.step)) {
    if (p_.config.train.compare_every > 0) {
      compare_replicas(p_.engine, p_.counters.step);
    }
    p_.enter("checkpoint", p_.config.deadline.checkpoint);
    p_.checkpoints->save_if_due(p_.counters, true);
  }
}

std::string RunEvaluations::early_stop() const {
  const TrainConfig& config = p_.config.train;
  const ValidationHistory& history = p_.counters.validation;
  if (config.early_stop_patience == 0 || history.without_improvement < config.early_stop_patience) {
    return "";
  }
  return fmt::format(
      "the validation loss has not fallen below {:.6g} by more than {:.6g} in the last {} "
      "(train.early_stop.patience {})",
      history.reference.value_or(0), config.early_stop_min_delta,
      counted(history.without_improvement, "evaluation"), config.early_stop_patience);
}

}  // namespace trireme
