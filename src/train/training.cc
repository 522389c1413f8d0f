#include "src/train/training.h"

#include <chrono>

#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/parallel/process_grid.h"
#include "src/train/ceiling.h"
#include "src/train/checkpointing.h"
#include "src/train/evaluate.h"
#include "src/train/fingerprint.h"
#include "src/train/metrics.h"
#include "src/train/open_dataset.h"
#include "src/train/startup.h"
#include "src/train/train_step.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kCeilingSize = 1024;
constexpr int kCeilingRounds = 3;

ProcessGrid grid_of(const RunConfig& config, int world_size) {
  const ParallelConfig& p = config.parallel;
  GridShape shape{.dp = std::nullopt, .tp = p.tp, .pp = p.pp};
  if (!p.dp.is("auto")) {
    shape.dp = static_cast<int>(p.dp.integer);
  }
  return {world_size, shape};
}

Reproducibility reproducibility_of(const std::string& word) {
  return word == "elastic"  ? Reproducibility::elastic
         : word == "layout" ? Reproducibility::layout
                            : Reproducibility::fast;
}

// Sums over the steps since the last logged one.
struct Window {
  Clock::time_point start = Clock::now();
  std::int64_t steps = 0;
  double data_wait_ms = 0;
  double comm_exposed_ms = 0;
  double checkpoint_stall_ms = 0;

  void add(const StepResult& result) {
    ++steps;
    data_wait_ms += result.data_wait_ms;
    comm_exposed_ms += result.comm_exposed_ms;
  }
};

}  // namespace

int threads_of(const RunConfig& config, const MpiSession& session) {
  const IntegerOrWord& threads = config.train.threads;
  return threads.is("auto") ? session.place().threads() : static_cast<int>(threads.integer);
}

struct Training::Parts {
  Parts(const LoadedConfig& loaded, const TrainingHost& host_of);

  void resume();
  StepResult one_step();
  void log_step(const StepResult& result);
  std::optional<double> evaluate_if_due(bool last);
  void save_if_due(bool stopping);
  void check_skipped(const StepResult& result) const;
  void phase(const char* name) {
    host.status.phase = name;
    host.status.step = counters.step;
  }
  void set_deadline(double seconds) {
    world.set_deadline(std::chrono::duration<double>(seconds));
    dp->set_deadline(std::chrono::duration<double>(seconds));
  }

  RunConfig config;
  TrainingHost host;
  Communicator& world;
  ProcessGrid grid;
  std::unique_ptr<Communicator> dp;
  const Kernels& kernels;
  Stream stream;
  Pool pool{Device{}};
  Dataset dataset;
  std::optional<Dataset> validation;
  ParameterStore parameters;
  Model model;
  std::unique_ptr<AdamWOptimizer> optimizer;
  std::unique_ptr<GradientReducer> reducer;
  RunFingerprints fingerprints;
  std::unique_ptr<TrainingCheckpoints> checkpoints;
  TrainingCounters counters;
  std::unique_ptr<Loader> loader;
  std::unique_ptr<TrainStep> step;
  std::unique_ptr<MetricsLog> metrics;  // rank 0's
  double ceiling_flops = 0;             // of all ranks
  Window window;
};

Training::Parts::Parts(const LoadedConfig& loaded, const TrainingHost& host_of)
    : config(loaded.config),
      host(host_of),
      world(host.session.world()),
      grid(grid_of(config, world.size())),
      dp(world.split(grid.dp_color(world.rank()), grid.dp_rank(world.rank()))),
      kernels(kernels_for({})),
      stream({}, threads_of(config, host.session)),
      dataset(open_dataset(config.data.train, config.model.vocab, world)),
      parameters(pool, config.compute_dtype()),
      model(config.model, parameters) {
  set_deadline(config.deadline.start);
  const Reproducibility reproducibility = reproducibility_of(config.reproducibility);
  check_reduction(config.micro_batches(), grid.dp(), reproducibility);
  check_same_kernels(world, kernels.name, config.reproducibility);
  log_ranks(host.session, world, stream.threads(), kernels.name, host.log);
  if (!config.data.validation.empty()) {
    validation.emplace(open_dataset(config.data.validation, config.model.vocab, world));
  }
  parameters.allocate();
  const OptimizerConfig& o = config.optimizer;
  optimizer = std::make_unique<AdamWOptimizer>(parameters,
                                               AdamWOptions{.beta1 = static_cast<float>(o.betas[0]),
                                                            .beta2 = static_cast<float>(o.betas[1]),
                                                            .epsilon = o.eps,
                                                            .weight_decay = o.weight_decay});
  reducer = std::make_unique<GradientReducer>(
      parameters, *dp, kernels, stream, pool,
      GradientReducer::Options{.micro_batches = config.micro_batches(),
                               .reproducibility = reproducibility,
                               .bucket_bytes = config.parallel.bucket_bytes});
  fingerprints = {config_fingerprint(config, dataset.manifest().digest()),
                  numerics_fingerprint(config, kernels.name, grid.dp()),
                  {{"tokenizer", dataset.manifest().tokenizer}}};
  checkpoints = std::make_unique<TrainingCheckpoints>(
      TrainingCheckpoints::Parts{config, fingerprints, parameters, *optimizer, world, host.log});
  resume();
}

void Training::Parts::resume() {
  phase("load");
  set_deadline(config.deadline.checkpoint);
  if (const auto resumed = checkpoints->resume()) {
    counters = *resumed;
  } else {
    parameters.initialize(config.train.seed);
  }
  if (config.checkpoint.every > 0) {
    checkpoints->reserve();
  }
  const std::int64_t sequence = config.data.sequence;
  const Sampler sampler(dataset.samples(sequence),
                        shuffle_block_samples(sequence, dataset.manifest().token_bytes),
                        parse_shuffle(config.data.shuffle), config.data.seed);
  const LeafRange leaves = reducer->micro_batches();
  loader = std::make_unique<Loader>(
      dataset, sampler,
      LoaderPlan{.sequence = sequence,
                 .global_batch = config.train.global_batch,
                 .micro_batch = config.train.micro_batch,
                 .first_micro = leaves.lo,
                 .micros = leaves.count(),
                 .steps = std::max<std::int64_t>(config.train.steps - counters.step, 0)},
      counters.step * config.train.global_batch);
  step = std::make_unique<TrainStep>(TrainStep::Parts{
      config, model, parameters, *optimizer, *reducer, *loader, *dp, kernels, stream, pool});
  ceiling_flops =
      all_reduce_value(world,
                       measure_product_rate(kernels, stream, pool, config.compute_dtype(),
                                            kCeilingSize, kCeilingRounds),
                       ReduceOp::sum);
  if (world.rank() != 0) {
    return;
  }
  metrics = std::make_unique<MetricsLog>(
      RunDirectory(config.run_dir), host.log,
      MetricsPlan{counters.step, config.train.steps, config.train.global_batch});
  host.log.info(fmt::format(
      "{} parameters, {} tokens a step in {} micro-batches over dp {}; step {} of {}; products at "
      "{}FLOP/s",
      format_count(static_cast<double>(parameter_count(config.model))),
      config.train.global_batch * sequence, config.micro_batches(), grid.dp(), counters.step,
      config.train.steps, format_count(ceiling_flops)));
}

StepResult Training::Parts::one_step() {
  phase("train");
  set_deadline(config.deadline.step);
  const StepResult result = step->run(counters, host.stop.signal());
  host.status.step = counters.step;
  window.add(result);
  if (result.skipped && world.rank() == 0) {
    host.log.warning(
        fmt::format("step {} skipped: loss {}, gradient norm {}; weights and moments "
                    "are untouched ({} in a row, {} are allowed)",
                    counters.step, result.loss, result.grad_norm, counters.skipped_in_a_row,
                    config.train.max_skipped_steps));
  }
  return result;
}

void Training::Parts::check_skipped(const StepResult& result) const {
  if (counters.skipped_in_a_row > config.train.max_skipped_steps) {
    throw DivergenceError(fmt::format(
        "step {}: the loss ({}) or the gradient norm ({}) was not finite {} times in a row: lower "
        "optimizer.lr, lengthen the warmup or go on from an earlier checkpoint "
        "(checkpoint.resume=STEP)",
        counters.step, result.loss, result.grad_norm, counters.skipped_in_a_row));
  }
}

std::optional<double> Training::Parts::evaluate_if_due(bool last) {
  const std::int64_t every = config.train.eval_every;
  if (!validation || !(last || (every > 0 && counters.step % every == 0))) {
    return std::nullopt;
  }
  phase("evaluate");
  set_deadline(config.deadline.evaluate);
  Run run{.kernels = kernels,
          .stream = stream,
          .pool = pool,
          .parameters = parameters,
          .dropout = {},
          .gradient_ready = {}};
  return evaluate(model, *validation,
                  {config.data.sequence, config.train.micro_batch, config.train.eval_samples}, *dp,
                  run)
      .loss;
}

void Training::Parts::log_step(const StepResult& result) {
  const bool last = counters.step == config.train.steps;
  const bool log_due = last || counters.step % config.train.log_every == 0;
  const std::chrono::duration<double> elapsed = Clock::now() - window.start;
  const std::optional<double> val_loss = evaluate_if_due(last);
  if (metrics != nullptr && (log_due || val_loss)) {
    const auto steps = static_cast<double>(window.steps);
    const double tokens =
        static_cast<double>(config.train.global_batch) * static_cast<double>(config.data.sequence);
    StepMetrics m;
    m.step = counters.step;
    m.loss = result.loss;
    m.grad_norm = result.grad_norm;
    m.lr = result.lr;
    m.samples = counters.step * config.train.global_batch;
    m.tokens = m.samples * config.data.sequence;
    m.tokens_per_s = steps * tokens / elapsed.count();
    m.step_ms = 1e3 * elapsed.count() / steps;
    const double flops = flops_per_token(config.model, config.data.sequence) * m.tokens_per_s;
    m.flops_per_s_a_rank = flops / world.size();
    m.mfu = flops / ceiling_flops;
    m.data_wait_ms = window.data_wait_ms / steps;
    m.comm_exposed_ms = window.comm_exposed_ms / steps;
    m.checkpoint_stall_ms = window.checkpoint_stall_ms / steps;
    m.memory_bytes = result.memory_bytes;
    m.skipped_steps = counters.skipped_steps;
    m.val_loss = val_loss;
    metrics->write(m);
  }
  if (log_due || val_loss) {
    window = Window{};
  }
  if (metrics != nullptr) {
    metrics->tick(counters.step);
  }
}

void Training::Parts::save_if_due(bool stopping) {
  phase("checkpoint");
  set_deadline(config.deadline.checkpoint);
  checkpoints->poll();
  if (stopping || checkpoints->due(counters.step)) {
    checkpoints->save(counters);
    window.checkpoint_stall_ms += checkpoints->last_stall_ms();
  }
}

Training::Training(const LoadedConfig& config, const TrainingHost& host)
    : parts_(std::make_unique<Parts>(config, host)) {}

Training::~Training() = default;

TrainingOutcome Training::run() {
  Parts& p = *parts_;
  TrainingOutcome outcome;
  p.window = Window{};
  while (p.counters.step < p.config.train.steps && outcome.stop_signal == 0) {
    const StepResult result = p.one_step();
    outcome.stop_signal = result.stop_signal;
    p.log_step(result);
    p.check_skipped(result);
    p.save_if_due(outcome.stop_signal != 0);
  }
  outcome.step = p.counters.step;
  outcome.finished = outcome.step >= p.config.train.steps;
  p.phase("checkpoint");
  p.checkpoints->save(p.counters);
  const bool durable = p.checkpoints->finish(outcome.step);
  if (p.metrics != nullptr) {
    p.metrics->finish();
  }
  if (!durable) {
    throw IoError(
        fmt::format("step {} is done but could not be saved in {}: make room and start "
                    "again; the work since the last checkpoint will be done again",
                    outcome.step, p.config.checkpoint_dir().string()));
  }
  if (p.world.rank() == 0 && outcome.finished) {
    RunDirectory(p.config.run_dir).mark_done(outcome.step);
  }
  p.world.barrier().wait();
  return outcome;
}

}  // namespace trireme
