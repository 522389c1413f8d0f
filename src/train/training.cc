#include "src/train/training.h"

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/fault.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/train/engine/loss_scale.h"
#include "src/train/grace_warning.h"
#include "src/train/memory/held_memory.h"
#include "src/train/parts/training_parts.h"
#include "src/train/prediction/run_prediction.h"
#include "src/train/recovery/recovery.h"
#include "src/train/run/done_mark.h"
#include "src/train/run_evaluations.h"
#include "src/train/step_window.h"
#include "src/train/watch/replica_guard.h"

namespace trireme {
namespace {

// LoopEnd says how a Loop ended.
struct LoopEnd {
  TrainingOutcome outcome;
  std::optional<StepResult> failed;  // the step that broke off, if any
};

// Executes steps, from the state of the parts.
class Loop {
 public:
  Loop(TrainingParts& parts, StepRecords& records) : p_(parts), records_(records) {}

  LoopEnd run();

 private:
  StepResult one_step();
  bool is_logged(std::int64_t step) const {
    return step == p_.config.train.steps || step % p_.config.train.log_every == 0;
  }
  int stop_signal();
  void report_judgement(std::int64_t step, const StepResult& result);
  void check_skipped(const StepResult& result);
  void watch_stragglers(const StepResult& result);
  void compare_if_due(bool stopping);
  void log_step(const StepResult& result);
  StepMetrics metrics_of(const StepResult& result);
  void write(const StepMetrics& metrics);
  void evaluate(StepMetrics metrics, bool stopping);
  void make_up_evaluation();
  void save_if_due(bool stopping);
  void finish_saves();
  void add_stall(const Stopwatch& watch);
  void finish(const TrainingOutcome& outcome);

  TrainingParts& p_;
  StepRecords& records_;
  RunEvaluations evaluations_{p_};
  RunPrediction prediction_{p_.config, p_.layout, p_.host.places, p_.world, p_.context.device()};
  StepWindow window_;
  bool stood_out_ = false;  // whether the previous step stood out
  GraceWarning grace_;
};

LoopEnd Loop::run() {
  TrainingOutcome outcome;
  if (p_.metrics != nullptr && !p_.energy->complaint().empty()) {
    p_.host.log.info("energy is not counted: " + p_.energy->complaint());
  }
  p_.energy->begin_steps();
  make_up_evaluation();
  if (p_.counters.step > p_.config.train.steps && p_.world.rank() == 0) {
    p_.host.log.warning(fmt::format(
        "the run is already at step {}, beyond train.steps {}: no step is left to train",
        p_.counters.step, p_.config.train.steps));
  }
  outcome.early_stop = evaluations_.early_stop();
  while (p_.counters.step < p_.config.train.steps && outcome.stop_signal == 0 &&
         outcome.early_stop.empty()) {
    if (p_.trace != nullptr) {
      p_.trace->begin_step(p_.counters.step, p_.config.train.steps);
    }
    const StepResult result = one_step();
    if (result.judgement.breaks_off()) {
      return {outcome, result};
    }
    outcome.stop_signal = result.stop_signal;
    // Save a step before evaluating it, so that the weights are safe whatever happens in the
    // evaluation.
    const bool evaluates = evaluations_.due();
    if (evaluates) {
      p_.counters.validation.pending = {result.loss, result.grad_norm};
    } else {
      log_step(result);
    }
    check_skipped(result);
    watch_stragglers(result);
    compare_if_due(outcome.stop_signal != 0);
    if (p_.host.check_security) {
      p_.host.check_security(p_.counters.step, p_.checkpoints->save_due(p_.counters.step));
    }
    save_if_due(outcome.stop_signal != 0);
    if (evaluates) {
      finish_saves();
      evaluate(metrics_of(result), outcome.stop_signal != 0);
      outcome.early_stop = evaluations_.early_stop();
    }
    if (p_.trace != nullptr) {
      p_.trace->end_step();
    }
  }
  outcome.step = p_.counters.step;
  outcome.finished = outcome.step >= p_.config.train.steps || !outcome.early_stop.empty();
  finish(outcome);
  return {outcome, std::nullopt};
}

StepResult Loop::one_step() {
  p_.enter("train", p_.config.deadline.step);
  const std::int64_t step = p_.counters.step;
  const std::int64_t first_sample = p_.config.batches().before(p_.counters.batches());
  const Stopwatch watch;
  if (is_logged(step + 1)) {
    p_.energy->start_reading();
  }
  const StepResult result = p_.step->run(p_.counters, stop_signal());
  prediction_.timings().add(result, watch.seconds());
  fault("step.end");
  p_.energy->note_step();
  p_.host.status.step = p_.counters.step;
  if (!result.judgement.breaks_off()) {
    p_.counters.loss_window.add(result.loss);
    p_.note_sources(first_sample, result);
  }
  window_.add(result);
  records_.add({step, result.loss, result.grad_norm, result.bits});
  report_judgement(step + 1, result);
  return result;
}

// Logs the judgement of a step. Of consecutive steps that stand out with a warning, only the first
// is logged.
void Loop::report_judgement(std::int64_t step, const StepResult& result) {
  const Judgement& judgement = result.judgement;
  const bool reported = std::exchange(stood_out_, judgement.response == Response::warn);
  if (judgement.response == Response::update || p_.world.rank() != 0 || (reported && stood_out_)) {
    return;
  }
  p_.host.log.event("stands_out", {{"step", step},
                                   {"finite", judgement.finite},
                                   {"loss", std::to_string(result.loss)},
                                   {"grad_norm", std::to_string(result.grad_norm)},
                                   {"loss_score", judgement.scores.loss},
                                   {"norm_score", judgement.scores.norm}});
  const std::string line =
      fmt::format("step {}: {}: {}", step, judgement.what,
                  consequence(judgement, step, p_.counters, p_.config.train.max_skipped_steps));
  if (judgement.response == Response::lower_scale) {
    p_.host.log.info(line);
  } else {
    p_.host.log.warning(line);
  }
}

// Returns the signal that ends the run after this step, or 0. Only rank 0 watches the time limit;
// the exchange at the end of the step passes it to the other ranks.
int Loop::stop_signal() {
  const int signal = p_.host.stop.signal();
  TimeLimit& limit = p_.host.limit;
  const double save_seconds = p_.checkpoints->longest_save_seconds();
  const std::int64_t bytes = p_.checkpoints->snapshots().bytes;
  if (signal != 0 || !limit.reached(TimeLimit::Clock::now(), save_seconds, bytes)) {
    return signal;
  }
  p_.host.log.info(
      fmt::format("the job ends in less than {:.0f} s: saving a checkpoint and exiting",
                  limit.margin_seconds(save_seconds, bytes)));
  return kTimeLimitSignal;
}

// Ends the run after too many skipped steps, on all ranks alike, but lets a save in progress finish
// first.
void Loop::check_skipped(const StepResult& result) {
  if (p_.counters.skipped_in_a_row <= p_.config.train.max_skipped_steps) {
    return;
  }
  p_.enter("checkpoint", p_.config.deadline.checkpoint);
  (void)p_.checkpoints->finish(p_.counters.step);
  throw DivergenceError(fmt::format(
      "step {}: the loss ({:.6g}) or the gradient norm ({:.6g}) {} {} in a row{}: lower "
      "optimizer.lr, lengthen the warmup or resume from an earlier checkpoint "
      "(checkpoint.resume=STEP; divergence.not_finite=rewind and divergence.spike=rewind do so by "
      "themselves)",
      p_.counters.step, result.loss, result.grad_norm,
      result.judgement.finite ? "had a spike" : "was not finite",
      counted(p_.counters.skipped_in_a_row, "time"), at_loss_scale(p_.config.train, p_.counters)));
}

void Loop::watch_stragglers(const StepResult& result) {
  for (const Straggler& each : p_.stragglers.add(1e-3 * result.compute_ms)) {
    if (p_.world.rank() == 0) {
      const std::string& host = p_.world.host(each.rank);
      p_.host.log.warning(fmt::format(
          "straggler: rank {} (host {}) computes {:.2f} times as long as its peers (z-score "
          "{:.1f}), for {} windows of {}: check this host for other programs, throttling and "
          "failing parts",
          each.rank, host, each.of_peers, each.score, StragglerWatch::kWindows,
          counted(p_.config.train.straggler_every, "step")));
      p_.host.log.event("straggler", {{"step", p_.counters.step},
                                      {"rank", each.rank},
                                      {"host", host},
                                      {"of_peers", each.of_peers},
                                      {"score", each.score}});
    }
  }
}

// Also compares before a save, so that no corrupt step is saved.
void Loop::compare_if_due(bool stopping) {
  const std::int64_t every = p_.config.train.compare_every;
  const std::int64_t step = p_.counters.step;
  if (every > 0 && (step % every == 0 || stopping || p_.checkpoints->save_due(step))) {
    compare_replicas(p_.engine, step);
  }
}

void Loop::log_step(const StepResult& result) {
  if (is_logged(p_.counters.step)) {
    const StepMetrics metrics = metrics_of(result);
    window_ = StepWindow();  // includes the time that logging this one takes
    if (p_.world.rank() == 0) {
      grace_.compare(1e-3 * metrics.step_ms + p_.checkpoints->longest_save_seconds(), p_.host.log);
    }
    write(metrics);
  }
  if (p_.metrics != nullptr) {
    p_.metrics->tick(p_.counters.step);
  }
}

void Loop::write(const StepMetrics& metrics) {
  if (p_.metrics != nullptr) {
    p_.metrics->write(metrics);
  }
  if (p_.host.observe) {
    p_.host.observe(metrics);
  }
  p_.counters.clear_windows();
}

StepMetrics Loop::metrics_of(const StepResult& result) {
  const RunConfig& config = p_.config;
  StepMetrics m = p_.place_metrics();
  m.global_batch = result.sequences;
  m.loss = result.loss;
  p_.add_parts(result, m);
  m.loss_mean = p_.counters.loss_window.mean();
  m.grad_norm = result.grad_norm;
  m.lr = result.lr;
  m.memory_bytes = result.memory_bytes;
  window_.describe(m, config.data.sequence);
  if (p_.context.device().kind == DeviceKind::cuda) {
    window_.describe_device(m);
  }
  const double flops = flops_per_token(config.model, config.data.sequence) * m.tokens_per_s;
  m.flops_per_s_per_rank = flops / p_.world.size();
  m.mfu = flops / p_.ceiling->at_least(flops);
  p_.energy->add_to(m, window_.steps(), window_.sequences() * config.data.sequence);
  return m;
}

// `metrics` are those of the latest step. A job that was asked to stop may have only seconds left:
// unless this was the last step, the evaluation is left to the next start.
void Loop::evaluate(StepMetrics metrics, bool stopping) {
  const bool now = !stopping || p_.counters.step == p_.config.train.steps;
  if (now) {
    evaluations_.evaluate(metrics);
  }
  write(metrics);
  window_ = StepWindow();
  if (p_.metrics != nullptr) {
    p_.metrics->tick(p_.counters.step);
  }
  if (now) {
    evaluations_.settle(*metrics.val_loss);
  }
}

// Evaluates the step from which the run resumed, if an earlier start saved it but ended before or
// soon after its evaluation. metrics.jsonl has a line for it only if that contains the evaluation
// (TrainingParts::make_metrics).
void Loop::make_up_evaluation() {
  const std::optional<PendingEvaluation> pending = p_.counters.validation.pending;
  if (!pending || p_.config.data.validation.empty()) {
    p_.counters.validation.pending.reset();
    return;
  }
  if (const auto logged = p_.logged_validation_loss()) {
    p_.counters.clear_windows();
    evaluations_.settle(*logged);
    return;
  }
  evaluate(p_.metrics_of_resumed_step(*pending), false);
}

void Loop::save_if_due(bool stopping) {
  const Stopwatch watch;
  const SpanTimer span(p_.engine.spans(), SpanKind::checkpoint, "checkpoint");
  p_.enter("checkpoint", p_.config.deadline.checkpoint);
  p_.checkpoints->poll();
  const bool due = stopping || p_.checkpoints->save_due(p_.counters.step);
  if (due) {
    p_.energy->begin_save();
  }
  p_.checkpoints->save_if_due(p_.counters, stopping);
  if (due) {
    p_.energy->end_save(true);
  }
  add_stall(watch);
}

void Loop::add_stall(const Stopwatch& watch) {
  window_.add_checkpoint_stall(watch.milliseconds());
  prediction_.timings().add_stall(watch.seconds());
}

// Nothing advances a save while an evaluation runs, which may take long.
void Loop::finish_saves() {
  const Stopwatch watch;
  const SpanTimer span(p_.engine.spans(), SpanKind::checkpoint, "checkpoint");
  p_.energy->begin_save();
  (void)p_.checkpoints->finish(p_.counters.step);
  p_.energy->end_save(false);
  add_stall(watch);
}

void Loop::finish(const TrainingOutcome& outcome) {
  p_.enter("checkpoint", p_.config.deadline.checkpoint);
  p_.checkpoints->save_if_due(p_.counters, true);
  const bool durable = p_.checkpoints->finish(outcome.step);
  if (p_.trace != nullptr) {
    p_.trace->finish();
  }
  const auto [predicted, peak] =
      p_.memory.log_measured(p_.engine, p_.checkpoints->snapshots(), p_.host.log);
  prediction_.finish({predicted, peak}, p_.host.measured, p_.host.log);
  if (p_.metrics != nullptr) {
    p_.metrics->finish();
  }
  p_.checkpoints->check_not_refused(outcome.step);
  if (!durable) {
    throw IoError(
        fmt::format("step {} is done but could not be saved in {} ({}): remove the cause and start "
                    "the run again; it repeats the steps since the last checkpoint",
                    outcome.step, p_.config.checkpoint_dir().string(), p_.checkpoints->failure()));
  }
  if (p_.world.rank() == 0 && outcome.finished) {
    if (p_.counters.skipped_in_a_row > 0) {
      p_.host.log.warning(fmt::format(
          "step {}: the run ends with {} whose update was skipped because the loss or the gradient "
          "was not finite or had a spike: the weights are those after step {}",
          outcome.step, counted(p_.counters.skipped_in_a_row, "step"),
          outcome.step - p_.counters.skipped_in_a_row));
    }
    fault("finish.done");
    const RunDirectory run(p_.config.run_dir);
    if (outcome.early_stop.empty()) {
      run.mark_done(outcome.step);
    } else {
      p_.host.log.info(
          fmt::format("stopped early at step {}: {}", outcome.step, outcome.early_stop));
      mark_done_early(run, outcome.step, outcome.early_stop);
    }
  }
  p_.world.barrier().wait();
}

}  // namespace

Training::Training(const RunConfig& config, const TrainingHost& host)
    : parts_(std::make_unique<TrainingParts>(config, host)) {}

Training::~Training() = default;

TrainingOutcome Training::run() {
  Recovery recovery(parts_->config, parts_->host);
  while (true) {
    const LoopEnd end = naming_held_memory(
        parts_->engine, [&] { return Loop(*parts_, recovery.records()).run(); }, kLessInTraining);
    if (!end.failed) {
      return end.outcome;
    }
    parts_ = recovery.after(std::move(parts_), *end.failed);
  }
}

}  // namespace trireme
