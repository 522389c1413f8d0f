#include "benchmarks/train/train.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "benchmarks/io/io_folder.h"
#include "benchmarks/progress.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "io/data/dataset.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/units.h"
#include "src/train/report/metrics.h"
#include "src/train/run/access_check.h"
#include "src/train/run/layout.h"
#include "src/train/run/run_config.h"
#include "src/train/start/connect.h"
#include "src/train/start/run_keys.h"
#include "src/train/start/startup.h"
#include "src/train/training.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// A part of a step: where its time is in the metrics.
struct StepPart {
  const char* name;
  double (*of)(const StepMetrics& m);
};
constexpr StepPart kStepParts[] = {
    {"compute_ms", [](const StepMetrics& m) { return m.compute_ms; }},
    {"comm_exposed_ms", [](const StepMetrics& m) { return m.comm_exposed_ms + m.tensor_wait_ms; }},
    {"bubble_ms", [](const StepMetrics& m) { return m.pipeline_wait_ms; }},
    {"data_wait_ms", [](const StepMetrics& m) { return m.data_wait_ms; }},
    {"checkpoint_ms", [](const StepMetrics& m) { return m.checkpoint_stall_ms; }}};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

class TrainBench {
 public:
  TrainBench(const BenchTrainOptions& options, AppContext& context)
      : options_(options),
        context_(context),
        session_(context.session()),
        folder_(options.folder, session_) {
    if (!folder_.shared()) {
      throw ConfigError(fmt::format("{} is a disk of each node: all ranks need to see one folder",
                                    options.folder.string()));
    }
    ConfigSources sources{.file = options.config, .arguments = options.arguments};
    sources.environment = environ;
    // The learning rate changes as in the whole run, which may warm up for longer than this.
    const std::int64_t schedule = load_run_config(sources).config.optimizer.schedule.steps;
    // The last of several values counts.
    for (const std::string& own :
         {fmt::format("run.dir={}", (folder_.path() / "run").string()),
          fmt::format("checkpoint.dir={}", (folder_.path() / "checkpoints").string()),
          fmt::format("train.steps={}", options.steps + options.warmup),
          fmt::format("optimizer.schedule.steps={}", schedule), std::string("train.log_every=1"),
          std::string("run.log_format=json"),  // without a progress bar
          std::string("checkpoint.resume=never"), std::string("plan.cluster=")}) {
      sources.arguments.push_back(own);
    }
    LoadedConfig loaded = load_run_config(sources);
    check_same_config(session_.world(), loaded);
    config_ = loaded.config;
    layout_ = make_layout(config_, session_.world().size(), session_.place().local_size);
  }

  Json run();

 private:
  bool speaks() const { return session_.world().rank() == 0; }
  void log_settings();
  void log_precision();
  void observe(const StepMetrics& metrics);
  Json entry() const;

  BenchTrainOptions options_;
  AppContext& context_;
  MpiSession& session_;
  // Keeps signals away from computing threads, and comes before what removes the folder at a
  // signal.
  StopFlag stop_;
  IoFolder folder_;
  RunConfig config_;
  std::optional<Layout> layout_;
  std::optional<BenchProgress> progress_;
  MlLog mllog_;
  std::vector<StepMetrics> steps_;  // the timed ones
  std::int64_t seen_ = 0;           // steps
};

void TrainBench::log_settings() {
  const auto samples = [&](const auto& datasets) {
    std::int64_t sum = 0;
    for (const auto& each : datasets) {
      sum += Dataset::open(each.path).samples(config_.data.sequence);
    }
    return sum;
  };
  const std::int64_t per_rank = config_.train.global_batch / config_.train.micro_batch;
  mllog_.event("seed", config_.train.seed);
  mllog_.event("global_batch_size", config_.train.global_batch);
  mllog_.event("micro_batch_size", config_.train.micro_batch);
  mllog_.event("gradient_accumulation_steps",
               std::max<std::int64_t>(per_rank / layout_->grid.dp(), 1));
  mllog_.event("max_sequence_length", config_.data.sequence);
  mllog_.event("tensor_parallelism", layout_->grid.tp());
  mllog_.event("pipeline_parallelism", layout_->grid.pp());
  // The program has neither of the two.
  mllog_.event("context_parallelism", 1);
  mllog_.event("expert_parallelism", 1);
  log_precision();
  mllog_.event("config_filename", options_.config.filename().string());
  mllog_.event("max_steps", config_.train.steps);
  mllog_.event("opt_name", config_.optimizer.name);
  mllog_.event("train_samples", samples(config_.data.train));
  mllog_.event("eval_samples", samples(config_.data.validation));
}

// Gradients travel in fp32; parameters (ZeRO) and activations as they are computed with.
void TrainBench::log_precision() {
  const std::string& own = config_.train.precision;
  const std::string word = own == "bf16" ? "bfloat16" : own;
  const bool only_gradients =
      config_.parallel.zero == 0 && layout_->grid.tp() == 1 && layout_->grid.pp() == 1;
  mllog_.event("lowest_numerical_precision_in_linear",
               config_.train.products == "fp8" ? "fp8" : word);
  mllog_.event("lowest_numerical_precision_in_attn", word);
  mllog_.event("lowest_numerical_precision_in_comm", only_gradients ? "fp32" : word);
}

void TrainBench::observe(const StepMetrics& metrics) {
  if (++seen_ > options_.warmup) {
    steps_.push_back(metrics);
  }
  progress_->done();
  if (speaks() && metrics.val_loss) {
    const Json at = {{"samples_count", metrics.samples}};
    mllog_.stop("block_stop", at);
    mllog_.start("eval_start", at);
    mllog_.event("eval_accuracy", *metrics.val_loss, at);
    mllog_.stop("eval_stop", at);
    mllog_.start("block_start", at);
  }
}

Json TrainBench::run() {
  if (options_.mllog && speaks()) {
    mllog_.describe(*options_.mllog);
    mllog_.event("cache_clear", false);  // this benchmark drops no caches
    mllog_.start("init_start");
    log_settings();
  }
  make_directories(config_.run_dir);
  progress_.emplace("bench train", options_.warmup + options_.steps, speaks());
  progress_->stage(fmt::format("{} to warm up, then {}", counted(options_.warmup, "step"),
                               counted(options_.steps, "step")));
  Log log({.rank = session_.world().rank(),
           .ranks = session_.world().size(),
           .host = session_.place().host,
           .terminal_level = LogLevel::warning});
  bool finished = false;
  {
    const World ranks = connect(config_, session_, log);
    TrainingHost host{.world = *ranks.control,
                      .data = *ranks.data,
                      .device = ranks.device,
                      .devices = &ranks.devices,
                      .places = session_.places(),
                      .recorder = session_.recorder(),
                      .log = log,
                      .stop = stop_,
                      .status = context_.status};
    check_same_policy(context_.access(), *ranks.control);
    host.access = &context_.access();
    const std::unique_ptr<StepKeys> keys = keys_of(config_.encryption, *ranks.control);
    host.keys = keys.get();
    host.links = ranks.links.get();
    host.observe = [this](const StepMetrics& metrics) { observe(metrics); };
    host.measured = options_.measured;
    Training training(config_, host);
    mllog_.stop("init_stop");
    mllog_.start("run_start");
    mllog_.start("block_start", {{"samples_count", 0}});
    finished = training.run().finished;
  }
  progress_->finish();
  const std::int64_t samples = steps_.empty() ? 0 : steps_.back().samples;
  mllog_.stop("block_stop", {{"samples_count", samples}});
  mllog_.stop("run_stop",
              {{"samples_count", samples}, {"status", finished ? "success" : "aborted"}});
  if (options_.mllog && speaks()) {
    write_named_file(options_.mllog->file, mllog_.text());
  }
  session_.world().barrier().wait();  // nobody removes the folder while others use it
  if (static_cast<std::int64_t>(steps_.size()) < options_.steps) {
    throw ConfigError(fmt::format("the run ended after {} of {} steps, so there is no result",
                                  seen_, options_.steps + options_.warmup));
  }
  return Json::array({entry()});
}

Json TrainBench::entry() const {
  const auto all_ranks = [&](auto of) {
    std::vector<double> own;
    for (const StepMetrics& metrics : steps_) {
      own.push_back(of(metrics));
    }
    return gather_by_rank(session_.world(), own);
  };
  const auto by_rank = all_ranks([](const StepMetrics& m) { return m.step_ms; });
  const std::vector<double> times = slowest(by_rank);
  const double step_ms = mean(multiplied(sums(by_rank), 1.0 / static_cast<double>(by_rank.size())));
  double tokens = 0;
  for (const StepMetrics& metrics : steps_) {
    tokens += static_cast<double>(metrics.global_batch * config_.data.sequence);
  }
  Json metrics = {
      {"tokens_per_s", tokens / (1e-3 * mean(times) * static_cast<double>(times.size()))},
      {"step_ms", step_ms}};
  double other = step_ms;
  for (const StepPart& part : kStepParts) {
    const auto values = all_ranks(part.of);
    const double value = mean(multiplied(sums(values), 1.0 / static_cast<double>(values.size())));
    metrics[part.name] = value;
    other -= value;
  }
  metrics["other_ms"] = other;
  metrics["median_step_ms"] = median_interval(times).median;
  metrics["loss"] = steps_.back().loss;
  return {{"name", "train"},
          {"params",
           {{"config", options_.config.filename().string()},
            {"ranks", session_.world().size()},
            {"dp", layout_->grid.dp()},
            {"tp", layout_->grid.tp()},
            {"pp", layout_->grid.pp()},
            {"zero", layout_->zero},
            {"precision", config_.train.precision},
            {"global_batch", config_.train.global_batch},
            {"micro_batch", config_.train.micro_batch},
            {"sequence", config_.data.sequence},
            {"steps", steps_.size()}}},
          {"metrics", metrics},
          {"measurement",
           to_json({.warmup = options_.warmup,
                    .stop = StopRule::count_or_duration(options_.steps, 0),
                    .sample = "one step, from the end of the previous one",
                    .synchronized_by = "the exchange of losses at the end of each step"})},
          {"samples", {{"step_ms", samples_json(times, by_rank)}}}};
}

}  // namespace

Json bench_train(const BenchTrainOptions& options, AppContext& context) {
  return TrainBench(options, context).run();
}

}  // namespace trireme
