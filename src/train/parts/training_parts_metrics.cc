#include <limits>

#include "mpi/agreement.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/train/engine/loss_scale.h"
#include "src/train/parts/training_parts.h"

namespace trireme {

std::optional<double> TrainingParts::logged_validation_loss() const {
  // NaN stands for null in the line, infinity for a missing line.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double loss = kNone;
  run_on_root(world, [&] {
    loss = trireme::logged_validation_loss(RunDirectory(config.run_dir).metrics(), counters.step,
                                           *host.text.reader)
               .value_or(kNone);
    return std::string();
  });
  world.broadcast({&loss, 1, DType::f64}, 0).wait();
  return loss == kNone ? std::nullopt : std::optional(loss);
}

void TrainingParts::note_sources(std::int64_t first_sample, const StepResult& result) {
  std::vector<SourceWindow>& windows = counters.source_windows;
  if (!result.sample_losses.empty()) {
    windows.resize(data.count());
  }
  // A sample of which few targets count has the weight of any other.
  for (std::size_t i = 0; i < result.sample_losses.size(); ++i) {
    SourceWindow& window = windows[data.mixture()(first_sample++).source];
    if (const double counted = result.sample_counts[i]; counted > 0) {
      window.add(result.sample_losses[i] * (static_cast<double>(config.data.sequence) / counted));
    }
  }
}

std::vector<SourceMetrics> TrainingParts::source_metrics() const {
  std::vector<SourceMetrics> sources;
  if (!config.data.is_mixture()) {
    return sources;
  }
  const std::int64_t sequence = config.data.sequence;
  const std::int64_t passed = config.batches().before(counters.batches());
  const auto used = counters.used_samples(config.batches());
  for (std::size_t i = 0; i < data.count(); ++i) {
    SourceMetrics m{config.data.train[i].name};
    if (i < counters.source_windows.size()) {
      m.loss = counters.source_windows[i].mean(sequence);
    } else {
      m.loss = std::numeric_limits<double>::quiet_NaN();
    }
    for (const auto& [first, end] : used) {
      m.tokens += (data.mixture().count(i, end) - data.mixture().count(i, first)) * sequence;
    }
    m.epochs =
        static_cast<double>(data.mixture().count(i, passed)) / static_cast<double>(data.samples(i));
    sources.push_back(std::move(m));
  }
  return sources;
}

StepMetrics TrainingParts::place_metrics() const {
  const BatchSchedule batches = config.batches();
  const std::int64_t behind = counters.batches();
  StepMetrics m;
  m.step = counters.step;
  m.samples = counters.samples(batches);
  m.tokens = m.samples * config.data.sequence;
  m.tokens_left =
      (batches.before(behind + config.train.steps - counters.step) - batches.before(behind)) *
      config.data.sequence;
  m.skipped_steps = counters.skipped_steps;
  m.sources = source_metrics();
  m.device = host.devices == nullptr ? "cpu" : host.devices->front().kind_text();
  if (config.train.scales_loss()) {
    m.loss_scale = loss_scale(config.train, counters);
    m.overflows = counters.loss_scale.overflows;
  }
  return m;
}

void TrainingParts::add_parts(const StepResult& result, StepMetrics& m) const {
  if (config.distill.is_on()) {
    m.cross_entropy = result.cross_entropy;
    m.kl_divergence = result.divergence;
  }
}

StepMetrics TrainingParts::metrics_of_resumed_step(const PendingEvaluation& pending) const {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  StepMetrics m = place_metrics();
  m.global_batch = config.batches().size_of(counters.batches() - 1);
  m.loss = pending.loss;
  m.loss_mean = counters.loss_window.mean();
  m.grad_norm = pending.grad_norm;
  m.lr = learning_rate(config.optimizer.schedule, counters.step - 1);
  for (double* rate :
       {&m.tokens_per_s, &m.step_ms, &m.flops_per_s_per_rank, &m.mfu, &m.data_wait_ms,
        &m.comm_exposed_ms, &m.tensor_wait_ms, &m.pipeline_wait_ms, &m.checkpoint_stall_ms}) {
    *rate = kUnknown;
  }
  m.memory_bytes = resident_bytes();
  return m;
}

void TrainingParts::make_metrics() {
  const RunDirectory run(config.run_dir);
  // A line that lacks the pending evaluation is written again once that is done.
  const bool rewrites =
      counters.validation.pending && !config.data.validation.empty() &&
      !trireme::logged_validation_loss(run.metrics(), counters.step, *host.text.reader);
  metrics = std::make_unique<MetricsLog>(
      run, host.log,
      MetricsPlan{counters.step - (rewrites ? 1 : 0), config.train.steps, config.batches(),
                  counters.batches() - counters.step, config.log_format, config.energy},
      host.text);
  metrics->keep_openmetrics(config, world.size());
  host.log.info(fmt::format(
      "{} parameters, {}{} per step in {} over dp {}; step {} of {}; matrix products at {}",
      format_count(static_cast<double>(parameter_count(config.model))),
      config.batches().stages() > 1 ? "up to " : "", counted(config.tokens_per_step(), "token"),
      counted(config.micro_batches(), "micro-batch"), layout.grid.dp(), counters.step,
      config.train.steps, format_rate(ceiling->flops(), "FLOP/s")));
}

}  // namespace trireme
