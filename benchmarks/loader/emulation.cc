#include "benchmarks/loader/emulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include "benchmarks/io/io_folder.h"
#include "benchmarks/loader/sample_files.h"
#include "benchmarks/loader/synthetic_dataset.h"
#include "benchmarks/progress.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "io/data/loader.h"
#include "src/base/error.h"
#include "src/base/say.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"
#include "src/train/memory/available_memory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kTokenBytes = 4;
constexpr double kMemories = 5;  // MLPerf Storage demands data of this multiple of the memory

// Reads sequences through the loader of training.
class TokenSource : public BatchSource {
 public:
  TokenSource(const std::filesystem::path& dataset, const EmulatedWorkload& workload, int rank,
              int ranks)
      : sequence_(workload.bytes_of(0) / kTokenBytes),
        dataset_(Dataset::open(dataset)),
        index_(dataset_.manifest(), sequence_),
        sampler_(index_.samples(), shuffle_block_samples(sequence_, kTokenBytes), Shuffle::global,
                 1),
        loader_(dataset_, sampler_,
                {.sequence = sequence_,
                 .batches = ranks * workload.batch,
                 .micro_batch = workload.batch,
                 .micros = [rank](std::int64_t) { return std::vector<std::int64_t>{rank}; },
                 .threads = workload.threads},
                0) {}
  void next() override { (void)loader_.next(); }

 private:
  std::int64_t sequence_;
  Dataset dataset_;
  SampleIndex index_;
  Sampler sampler_;
  Loader loader_;
};

class Emulation {
 public:
  Emulation(const EmulationOptions& options, MpiSession& session)
      : options_(options),
        session_(session),
        published_(find_workload(options.workload, options.accelerator)),
        workload_(published_.scaled(options.scale)),
        folder_(options.folder, session) {
    if (!folder_.shared()) {
      throw ConfigError(fmt::format(
          "{} is a disk of each node: --emulate needs a file system that all nodes share",
          options.folder.string()));
    }
    if (static_cast<double>(options.data_bytes) < workload_.sample_bytes) {
      throw ConfigError(fmt::format("--data-bytes {}: a sample of {} has {:.0f} bytes: give more",
                                    options.data_bytes, workload_.name, workload_.sample_bytes));
    }
    workload_.threads = options.threads > 0 ? options.threads : workload_.threads;
    const std::int64_t batches = std::max<std::int64_t>(
        2, options.data_bytes / ranks() / static_cast<std::int64_t>(step_bytes()));
    samples_ = workload_.batch * ranks() * std::min(batches, options.steps + 1);
    is_limited_by_steps_ = options.steps + 1 < batches;
    make_data();
  }

  EmulationResult run();

 private:
  int rank() const { return session_.world().rank(); }
  int ranks() const { return session_.world().size(); }
  bool is_tokens() const { return workload_.samples_per_file == 0; }
  double step_bytes() const {
    return static_cast<double>(workload_.batch) * workload_.sample_bytes;
  }
  StopRule rule() const { return StopRule::count_or_duration(options_.steps, options_.duration); }

  void make_data();
  // Runs one step and returns this rank's seconds: of waiting for data, and of the whole step.
  std::pair<double, double> step(BatchSource& source);
  Json entry(const std::vector<std::vector<double>>& seconds, const std::vector<double>& waits,
             double utilization) const;

  EmulationOptions options_;
  MpiSession& session_;
  EmulatedWorkload published_;
  EmulatedWorkload workload_;
  IoFolder folder_;
  std::int64_t samples_ = 0;
  std::int64_t data_bytes_ = 0;
  bool is_limited_by_steps_ = false;  // whether --steps read less than --data-bytes
  std::optional<SampleFiles> files_;
};

void Emulation::make_data() {
  if (is_tokens()) {
    data_bytes_ = samples_ * workload_.bytes_of(0) + kTokenBytes;
  } else {
    files_.emplace(folder_.path(), workload_, samples_);
    data_bytes_ = files_->bytes();
  }
  folder_.check_room(data_bytes_ / ranks(), session_);
  BenchProgress progress("bench loader", 1, rank() == 0);
  progress.stage(fmt::format("writing {} of samples", format_bytes(data_bytes_)));
  if (files_) {
    files_->write(rank(), ranks());
  } else if (rank() == 0) {
    write_random_tokens(folder_.path() / "tokens", kTokenBytes, data_bytes_);
  }
  session_.world().barrier().wait();
  progress.finish();
  if (rank() == 0 && is_limited_by_steps_) {
    say(fmt::format(
        "note: wrote {} of samples, less than --data-bytes {}: {} read no more (--steps)",
        format_bytes(data_bytes_), format_bytes(options_.data_bytes),
        counted(options_.steps + 1, "step")));
  }
  const auto memory = static_cast<double>(available_memory().bytes);
  if (rank() == 0 && static_cast<double>(data_bytes_) < kMemories * memory) {
    say(
        fmt::format("note: MLPerf Storage demands samples of {:g} times the memory ({}); instead, "
                    "each sample is\ndropped from this node's page cache once it has been read",
                    kMemories, is_limited_by_steps_ ? "--steps" : "--data-bytes"));
  }
}

std::pair<double, double> Emulation::step(BatchSource& source) {
  const Stopwatch watch;
  source.next();
  const double waited = watch.seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(workload_.compute_seconds));
  session_.world().barrier().wait();
  return {waited, watch.seconds()};
}

EmulationResult Emulation::run() {
  std::unique_ptr<BatchSource> source;
  if (files_) {
    source = std::make_unique<SampleReader>(*files_, workload_, rank(), ranks());
  } else {
    source = std::make_unique<TokenSource>(folder_.path() / "tokens", workload_, rank(), ranks());
  }
  BenchProgress progress("bench loader", options_.steps, rank() == 0);
  progress.stage(options_.duration > 0 ? fmt::format("steps for {:g} s", options_.duration)
                                       : counted(options_.steps, "step"));
  step(*source);
  std::vector<double> seconds;
  std::vector<double> waits;
  for (Sampling sampling(rule(), &session_.world()); sampling.more(seconds.size());) {
    const auto [waited, whole] = step(*source);
    waits.push_back(waited);
    seconds.push_back(whole);
    progress.done();
  }
  progress.finish();
  session_.world().barrier().wait();  // all have read before the folder is removed
  const auto by_rank = gather_by_rank(session_.world(), seconds);
  const std::vector<double> all_waits = sums(gather_by_rank(session_.world(), waits));
  double utilization = 1;
  for (const std::vector<double>& own : by_rank) {
    double total = 0;
    for (const double each : own) {
      total += each;
    }
    utilization =
        std::min(utilization, static_cast<double>(own.size()) * workload_.compute_seconds / total);
  }
  return {Json::array({entry(by_rank, all_waits, utilization)}), utilization, published_};
}

Json Emulation::entry(const std::vector<std::vector<double>>& by_rank,
                      const std::vector<double>& waits, double utilization) const {
  const std::vector<double> steps = slowest(by_rank);
  double total = 0;
  double waited = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    total += steps[i];
    waited += waits[i] / ranks();
  }
  const double rate = static_cast<double>(steps.size()) * ranks() / total;  // steps of accelerators
  auto in_ms = multiplied(by_rank, 1e3);
  return {{"name", "loader_emulation"},
          {"params",
           {{"workload", workload_.name},
            {"accelerator", workload_.accelerator},
            {"ranks", ranks()},
            {"sample_bytes", std::llround(workload_.sample_bytes)},
            {"sample_bytes_spread", std::llround(workload_.sample_bytes_spread)},
            {"batch", workload_.batch},
            {"compute_ms", std::round(1e6 * workload_.compute_seconds) / 1e3},
            {"scale", options_.scale},
            {"threads", workload_.threads},
            {"data_bytes", data_bytes_},
            {"file_system", folder_.file_system()},
            {"rounds", steps.size()}}},
          {"metrics",
           {{"accelerator_utilization", utilization},
            {"least_utilization", workload_.least_utilization},
            {"samples_per_s", rate * static_cast<double>(workload_.batch)},
            {"bytes_per_s", rate * step_bytes()},
            {"needed_bytes_per_s", workload_.needed_bytes_per_s() * ranks()},
            {"step_ms", 1e3 * median_interval(steps).median},
            {"data_wait_ms", 1e3 * waited / static_cast<double>(steps.size())}}},
          {"measurement", to_json({.warmup = 1,
                                   .stop = rule(),
                                   .sample = "a step: waiting for the batch, computing, a barrier",
                                   .synchronized_by = "a barrier after each step"})},
          {"samples", {{"step_ms", samples_json(multiplied(steps, 1e3), in_ms)}}}};
}

}  // namespace

EmulationResult emulate_loader(const EmulationOptions& options, MpiSession& session) {
  return Emulation(options, session).run();
}

}  // namespace trireme
