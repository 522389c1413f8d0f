#include "src/train/training_parts.h"

#include <algorithm>

#include "src/base/config_tree.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/parallel/placement.h"
#include "src/train/ceiling.h"
#include "src/train/fingerprint.h"
#include "src/train/open_dataset.h"
#include "src/train/startup.h"

namespace trireme {
namespace {

constexpr std::int64_t kCeilingSize = 1024;
constexpr int kCeilingRounds = 15;

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

int threads_of(const RunConfig& config, const RankPlace& place) {
  const IntegerOrWord& threads = config.train.threads;
  return threads.is("auto") ? place.threads() : static_cast<int>(threads.integer);
}

// A name that is no field would be believed to allow something.
void check_allowed_fields(const std::vector<std::string>& allowed, const nlohmann::json& fields) {
  std::vector<std::string> known;
  for (const auto& [name, value] : fields.items()) {
    known.push_back(name);
  }
  for (const std::string& field : allowed) {
    const bool names_one = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
      return name == field || name.starts_with(field + ".");
    });
    if (!names_one) {
      const std::string near = nearest_word(field, known);
      throw ConfigError(fmt::format(
          "checkpoint.allow_change: there is no field '{}'{}; the fields are those of `trireme "
          "ckpt show`",
          field, near.empty() ? "" : ", did you mean " + near + "?"));
    }
  }
}

}  // namespace

TrainingParts::TrainingParts(const RunConfig& the_config, const TrainingHost& the_host)
    : config(the_config),
      host(the_host),
      world(host.world),
      grid(grid_of(config, world.size())),
      dp(world.split(grid.dp_color(world.rank()), grid.dp_rank(world.rank()), "dp")),
      kernels(kernels_for({})),
      stream({}, threads_of(config, host.places.at(static_cast<std::size_t>(world.rank())))),
      shared_pool({}, world.memory()),
      dataset(open_dataset(config.data.train, config.model.vocab, world)),
      parameters(pool, config.compute_dtype()),
      model(config.model, parameters) {
  host.recorder.set_dump_folder(config.run_dir / "logs");
  enter("start", config.deadline.start);
  check_reduction(config.micro_batches(), grid.dp(), reproducibility_of(config.reproducibility));
  if (config.reproducibility == "fast") {
    dp->set_sum_order(SumOrder::any);
  }
  check_same_kernels(world, kernels.name, config.reproducibility);
  log_ranks(host.places, world, stream.threads(), kernels.name, host.log);
  if (config.parallel.placement == "print" && world.rank() == 0) {
    for (const std::string& line : describe_placement(grid, host.places)) {
      host.log.info(line);
    }
  }
  if (!config.data.validation.empty()) {
    validation.emplace(open_dataset(config.data.validation, config.model.vocab, world));
  }
  parameters.allocate();
  make_optimizer();
  make_checkpoints();
  resume();
  make_loader();
  measure_ceiling();
  if (world.rank() == 0) {
    make_metrics();
  }
}

void TrainingParts::enter(const char* phase, double deadline_seconds) {
  host.status.phase = phase;
  host.recorder.enter_phase(phase);
  host.status.step = counters.step;
  world.set_deadline(std::chrono::duration<double>(deadline_seconds));
  dp->set_deadline(std::chrono::duration<double>(deadline_seconds));
}

void TrainingParts::make_optimizer() {
  const OptimizerConfig& o = config.optimizer;
  optimizer = std::make_unique<AdamWOptimizer>(parameters,
                                               AdamWOptions{.beta1 = static_cast<float>(o.betas[0]),
                                                            .beta2 = static_cast<float>(o.betas[1]),
                                                            .epsilon = o.eps,
                                                            .weight_decay = o.weight_decay});
  reducer = std::make_unique<GradientReducer>(
      parameters, *dp, kernels, stream, shared_pool,
      GradientReducer::Options{.micro_batches = config.micro_batches(),
                               .reproducibility = reproducibility_of(config.reproducibility),
                               .bucket_bytes = config.parallel.bucket_bytes});
}

void TrainingParts::make_checkpoints() {
  fingerprints = {config_fingerprint(config, dataset.manifest().digest()),
                  numerics_fingerprint(config, kernels.name, grid.dp()),
                  {{"tokenizer", dataset.manifest().tokenizer}}};
  check_allowed_fields(config.checkpoint.allow_change, fingerprints.config);
  checkpoints = std::make_unique<TrainingCheckpoints>(
      TrainingCheckpoints::Parts{config, fingerprints, parameters, *optimizer, world, host.log});
}

void TrainingParts::resume() {
  enter("load", config.deadline.checkpoint);
  if (const auto resumed = checkpoints->resume()) {
    counters = *resumed;
  } else {
    parameters.initialize(config.train.seed);
  }
  if (config.checkpoint.every > 0) {
    checkpoints->reserve();
  }
}

void TrainingParts::make_loader() {
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
  step = std::make_unique<TrainStep>(TrainStep::Parts{config, model, parameters, *optimizer,
                                                      *reducer, *loader, *dp, host.recorder,
                                                      kernels, stream, pool});
}

void TrainingParts::measure_ceiling() {
  // The best of several: right after the start memory is still being handed out.
  const ProductRate own = measure_product_rate(kernels, stream, pool, config.compute_dtype(),
                                               kCeilingSize, kCeilingRounds);
  ceiling_flops = all_reduce_value(world, own.best, ReduceOp::sum);
}

void TrainingParts::make_metrics() {
  metrics = std::make_unique<MetricsLog>(
      RunDirectory(config.run_dir), host.log,
      MetricsPlan{counters.step, config.train.steps, config.train.global_batch});
  host.log.info(fmt::format(
      "{} parameters, {} tokens a step in {} micro-batches over dp {}; step {} of {}; products at "
      "{}FLOP/s",
      format_count(static_cast<double>(parameter_count(config.model))), config.tokens_a_step(),
      config.micro_batches(), grid.dp(), counters.step, config.train.steps,
      format_count(ceiling_flops)));
}

}  // namespace trireme
