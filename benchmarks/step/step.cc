#include "benchmarks/step/step.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/progress.h"
#include "benchmarks/report.h"
#include "benchmarks/sampling.h"
#include "benchmarks/step/pipeline_bubble.h"
#include "mpi/session/backend.h"
#include "src/app/command/app_context.h"
#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/base/say.h"
#include "src/base/stopwatch.h"
#include "src/nn/model_size.h"
#include "src/train/engine/train_step.h"
#include "src/train/memory/memory_report.h"
#include "src/train/report/ceiling.h"
#include "src/train/run/model_presets.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kUsualSequence = 1024;
constexpr std::int64_t kCeilingSize = 2048;
constexpr int kCeilingRounds = 5;
constexpr std::chrono::minutes kDeadline{10};

// StepTimings holds the times of the steps' parts in milliseconds on this rank.
struct StepTimings {
  std::vector<double> step;  // one value per round, divided by the steps of a round
  std::vector<double> backward;
  std::vector<double> exposed;
  std::vector<double> tensor_wait;
  std::vector<double> pipeline_wait;
  std::vector<double> optimizer;
  std::vector<double> ceiling;  // FLOP/s
};

std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocab, int key) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto bits = philox({static_cast<std::uint32_t>(i), 0, 0, 0},
                             philox_key(static_cast<std::uint64_t>(key)))[0];
    tokens[i] = static_cast<std::int32_t>(bits % static_cast<std::uint32_t>(vocab));
  }
  return tokens;
}

RunConfig config_of(const BenchStepOptions& options, int ranks) {
  RunConfig c;
  c.model = preset_model_config(options.model);
  c.data.sequence =
      options.sequence > 0 ? options.sequence : std::min(kUsualSequence, c.model.context);
  c.train.micro_batch = options.micro_batch;
  const std::int64_t per_replica = std::int64_t{options.tp} * options.pp;
  const std::int64_t dp =
      options.dp > 0 ? options.dp : std::max<std::int64_t>(ranks / per_replica, 1);
  c.train.global_batch = options.micro_batch * options.micro_batches * dp;
  c.train.steps = std::int64_t{options.rounds + 1} * options.steps;
  c.train.precision = options.precision;
  c.train.recompute = options.recompute;
  c.optimizer.schedule.kind = ScheduleKind::constant;
  c.optimizer.schedule.lr = c.optimizer.lr;
  c.optimizer.schedule.steps = c.train.steps;
  c.parallel.dp = {options.dp, options.dp > 0 ? "" : "auto"};
  c.parallel.tp.integer = options.tp;
  c.parallel.pp.integer = options.pp;
  c.parallel.schedule = options.schedule;
  c.parallel.virtual_stages = options.virtual_stages;
  c.parallel.zero = options.zero;
  if (!std::has_single_bit(static_cast<std::uint64_t>(dp))) {
    c.reproducibility = "layout";  // elastic sums need a power of two
  }
  if (options.sequence > c.model.context) {
    throw ConfigError(fmt::format("--sequence {}: the context of {} is {} tokens", options.sequence,
                                  options.model, c.model.context));
  }
  return c;
}

int fewest_ranks_per_host(const std::vector<RankPlace>& places) {
  return std::min_element(
             places.begin(), places.end(),
             [](const RankPlace& a, const RankPlace& b) { return a.local_size < b.local_size; })
      ->local_size;
}

class StepBench {
 public:
  StepBench(const BenchStepOptions& options, MpiSession& session)
      : options_(options),
        config_(config_of(options, session.world().size())),
        layout_(
            make_layout(config_, session.world().size(), fewest_ranks_per_host(session.places()))),
        data_(session.make_world(parse_backend(options.backend))),
        world_(data_->split(0, data_->rank(), "control")),
        context_(Device::cpu(),
                 compute_threads(options.threads > 0 ? options.threads : session.place().threads()),
                 data_->memory()),
        expected_(plan_memory(config_, layout_, world_->rank(),
                              resident_bytes() - shared_resident_bytes())),
        engine_(config_, layout_, {*world_, *data_, session.recorder(), context_}),
        bubble_(layout_.schedule, layout_.shape),
        step_(engine_, [this] { return tokens(); }) {
    engine_.set_deadline(kDeadline);
    engine_.initialize(1);
    const std::int64_t count = options.micro_batch * config_.data.sequence;
    ids_ = random_tokens(count, config_.model.vocab, 0);
    targets_ = random_tokens(count, config_.model.vocab, 1);
  }

  // Measures the ceiling between the rounds, so that both are disturbed by the same other programs.
  StepTimings run() {
    StepTimings timings;
    if (layout_.reproducibility != Reproducibility::elastic && world_->rank() == 0) {
      say(fmt::format(
          "bench step: {} replicas are no power of two, so gradients are summed as with "
          "numerics.reproducibility=layout",
          layout_.grid.dp()));
    }
    BenchProgress progress("bench step", options_.rounds + 1, world_->rank() == 0);
    progress.stage("warming up");
    one_round(nullptr);
    progress.done();
    progress.stage(stop_rule().rounds() + " against the product rate");
    for (Sampling sampling(stop_rule(), world_.get()); sampling.more(timings.step.size());) {
      world_->barrier().wait();
      const double ceiling =
          measure_product_rate(context_, context_.activations(), config_.compute_dtype(),
                               kCeilingSize, kCeilingRounds)
              .median;
      world_->barrier().wait();
      one_round(&timings);
      timings.ceiling.push_back(ceiling);
      progress.done();
    }
    return timings;
  }

  Json result(const StepTimings& timings);

 private:
  LoadedMicroBatch tokens() const {
    const std::int64_t count = config_.train.micro_batch * config_.data.sequence;
    return {.first_sample = 0,
            .batch = config_.train.micro_batch,
            .time = config_.data.sequence,
            .ids = {ids_.data(), count, DType::i32},
            .targets = {targets_.data(), count, DType::i32}};
  }

  StopRule stop_rule() const {
    return StopRule::count_or_duration(options_.rounds, options_.duration);
  }
  // The time of a round includes the communication that is still in flight after its last step.
  void one_round(StepTimings* timings) {
    const Stopwatch watch;
    for (int i = 0; i < options_.steps; ++i) {
      const Stopwatch one;
      const StepResult result = step_.run(counters_, 0);
      if (timings != nullptr) {
        note(*timings, one.milliseconds(), result);
      }
    }
    for (const auto& chunk : engine_.chunks()) {
      chunk->state.parameters().settle();
    }
    if (timings != nullptr) {
      timings->step.push_back(watch.milliseconds() / options_.steps);
    }
  }

  void note(StepTimings& timings, double milliseconds, const StepResult& result) {
    const PipelineRunner::Timings& ran = engine_.replica().timings();
    bubble_.add(ran);
    resident_ = std::max(resident_, resident_without_other_ranks());
    timings.backward.push_back(1e3 * ran.seconds);
    timings.exposed.push_back(result.comm_exposed_ms);
    timings.tensor_wait.push_back(result.tensor_wait_ms);
    timings.pipeline_wait.push_back(result.pipeline_wait_ms);
    timings.optimizer.push_back(milliseconds - 1e3 * ran.seconds - result.comm_exposed_ms);
  }

  // Returns the memory that this rank has taken, without the shared memory of other ranks.
  std::int64_t resident_without_other_ranks() const {
    const bool maps_own = &data_->memory() != &host_memory();
    return resident_bytes() - shared_resident_bytes() + (maps_own ? engine_.shared_bytes() : 0);
  }

  // Returns the size of a message between two stages.
  std::int64_t message_bytes() const {
    return config_.train.micro_batch * config_.data.sequence * config_.model.hidden *
           size_of(config_.compute_dtype());
  }

  Json params(std::size_t rounds) const;
  void add_memory(Json& metrics);

  BenchStepOptions options_;
  RunConfig config_;
  Layout layout_;
  std::unique_ptr<Communicator> data_;   // for tensors
  std::unique_ptr<Communicator> world_;  // for messages of the host
  DeviceContext context_;
  MemoryPlan expected_;
  Engine engine_;
  PipelineBubble bubble_;
  TrainStep step_;
  TrainingCounters counters_;
  std::int64_t resident_ = 0;  // bytes, maximum over the steps
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t> targets_;
};

Json StepBench::params(std::size_t rounds) const {
  Json params = {{"model", options_.model},
                 {"precision", options_.precision},
                 {"micro_batch", options_.micro_batch},
                 {"micro_batches", options_.micro_batches},
                 {"sequence", config_.data.sequence},
                 {"ranks", world_->size()},
                 {"threads", context_.threads()},
                 {"kernels", context_.kernels().name},
                 {"rounds", rounds},
                 {"steps", options_.steps},
                 {"dp", layout_.grid.dp()},
                 {"tp", layout_.grid.tp()},
                 {"pp", layout_.grid.pp()},
                 {"schedule", options_.schedule},
                 {"virtual_stages", options_.virtual_stages},
                 {"zero", options_.zero},
                 {"recompute", options_.recompute},
                 {"backend", options_.backend}};
  if (layout_.reproducibility != Reproducibility::elastic) {
    params["reproducibility"] = to_string(layout_.reproducibility);
  }
  return params;
}

// Adds the metrics of memory, each as the maximum over the ranks.
void StepBench::add_memory(Json& metrics) {
  const auto of_all = [this](auto value) {
    return all_reduce_value(*world_, value, ReduceOp::max);
  };
  const std::int64_t expected = expected_.total() - expected_.snapshot;
  metrics["memory_bytes"] = of_all(resident_);
  metrics["memory_expected_bytes"] = of_all(expected);
  metrics["memory_ratio"] = of_all(static_cast<double>(resident_) / static_cast<double>(expected));
}

Json StepBench::result(const StepTimings& timings) {
  // The slowest rank determines the time of a step; the ceiling is the sum over all ranks.
  const auto step_by_rank = gather_by_rank(*world_, timings.step);
  const auto ceiling_by_rank = gather_by_rank(*world_, timings.ceiling);
  const std::vector<double> steps = slowest(step_by_rank);
  const std::vector<double> ceilings = sums(ceiling_by_rank);
  const double step = 1e-3 * median(steps);
  const double ceiling = median(ceilings);
  const auto tokens = static_cast<double>(config_.tokens_per_step());
  const double flops = flops_per_token(config_.model, config_.data.sequence) * tokens / step;
  const double transfer = measure_transfer(engine_.pp(), context_.exchange(), message_bytes());
  const PipelineBubble::Fractions bubble = bubble_.fractions(engine_.pp(), transfer);
  const auto mean_of_all = [this](double value) {
    return all_reduce_value(*world_, value, ReduceOp::sum) / world_->size();
  };
  Json metrics = {{"tokens_per_s", tokens / step},
                  {"step_ms", 1e3 * step},
                  {"forward_backward_ms", median(timings.backward)},
                  {"comm_exposed_ms", median(timings.exposed)},
                  {"tensor_wait_ms", median(timings.tensor_wait)},
                  {"pipeline_wait_ms", median(timings.pipeline_wait)},
                  {"optimizer_ms", median(timings.optimizer)},
                  {"bubble_fraction", mean_of_all(bubble.measured)},
                  {"bubble_predicted", mean_of_all(bubble.predicted)},
                  {"bubble_replayed", mean_of_all(bubble.replayed)},
                  {"transfer_ms", 1e3 * mean_of_all(transfer)},
                  {"flop_convention", "6N + 6LCT, causal"},
                  {"flops_per_s", flops},
                  {"ceiling_flops_per_s", ceiling},
                  {"fraction_of_ceiling", flops / ceiling}};
  add_memory(metrics);
  return {{"name", "step"},
          {"params", params(steps.size())},
          {"metrics", metrics},
          {"measurement", to_json({.warmup = 1,
                                   .stop = stop_rule(),
                                   .sample = "a round of params.steps steps, per step",
                                   .synchronized_by = "a barrier before each round"})},
          {"samples",
           {{"step_ms", samples_json(steps, step_by_rank)},
            {"ceiling_flops_per_s", samples_json(ceilings, ceiling_by_rank)}}}};
}

}  // namespace

Json bench_step(const BenchStepOptions& options, AppContext& context) {
  StepBench bench(options, context.session());
  return bench.result(bench.run());
}

}  // namespace trireme
