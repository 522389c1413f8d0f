#include "benchmarks/calibrate/short_trains.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "benchmarks/muted_output.h"
#include "benchmarks/train/train.h"
#include "src/base/error.h"
#include "src/base/say.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace {

// With shorter sequences, attention would take no time.
constexpr std::int64_t kLeastSequence = 64;

// A variant of one configuration, with what its rounds have measured.
struct Candidate {
  std::filesystem::path config;
  TrainVariant variant;
  bool needed = false;  // if it is not possible, the configuration is wrong
  std::vector<MeasuredStep> rounds = {};
  std::string why_not = {};  // why the model does not allow it, or ""
};

std::optional<MeasuredStep> train_once(const ShortTrainsOptions& options, const Candidate& what,
                                       AppContext& context) {
  BenchTrainOptions train;
  train.config = what.config;
  train.arguments = options.arguments;
  for (const char* none : {"data.validation=", "train.eval_every=0", "checkpoint.every=0",
                           "checkpoint.memory_every=0", "run.trace=0", "metrics.openmetrics="}) {
    train.arguments.emplace_back(none);
  }
  train.arguments.insert(train.arguments.end(), what.variant.arguments.begin(),
                         what.variant.arguments.end());
  train.folder = options.folder;
  train.steps = options.steps;
  std::optional<MeasuredStep> found;
  train.measured = [&found](const MeasuredStep& step) { found = step; };
  const MutedOutput muted;
  (void)bench_train(train, context);
  return found;
}

std::vector<Candidate> candidates_of(const ShortTrainsOptions& options, int ranks) {
  std::vector<Candidate> all;
  for (const std::filesystem::path& file : options.configs) {
    const RunConfig config =
        load_run_config({.file = file, .arguments = options.arguments, .environment = environ})
            .config;
    bool is_first = true;
    for (TrainVariant& variant : train_variants(ranks, config.model.layers, config.data.sequence)) {
      all.push_back({file, std::move(variant), std::exchange(is_first, false)});
    }
  }
  return all;
}

MeasuredStep median_round(Candidate& candidate) {
  std::vector<MeasuredStep>& rounds = candidate.rounds;
  std::sort(rounds.begin(), rounds.end(), [](const MeasuredStep& a, const MeasuredStep& b) {
    return a.measured.total() < b.measured.total();
  });
  MeasuredStep middle = rounds[(rounds.size() - 1) / 2];  // the lower one of two: noise only adds
  middle.name = fmt::format("{}: {}", candidate.config.filename().string(), candidate.variant.name);
  return middle;
}

}  // namespace

std::vector<TrainVariant> train_variants(int ranks, std::int64_t layers, std::int64_t sequence) {
  const auto layout = [](int dp, int tp, int pp, int zero) {
    return std::vector<std::string>{fmt::format("parallel.dp={}", dp),
                                    fmt::format("parallel.tp={}", tp),
                                    fmt::format("parallel.pp={}", pp),
                                    fmt::format("parallel.zero={}", zero),
                                    "parallel.schedule=1f1b",
                                    "parallel.virtual_stages=1",
                                    "parallel.layout=given"};
  };
  const std::vector<std::string> plain = layout(ranks, 1, 1, 0);
  const std::string dp = ranks > 1 ? fmt::format("dp {}", ranks) : "one rank";
  std::vector<TrainVariant> variants = {{dp, plain}};
  const auto add = [&](const std::string& name, std::vector<std::string> arguments,
                       const std::string& more = "") {
    if (!more.empty()) {
      arguments.push_back(more);
    }
    variants.push_back({name, std::move(arguments)});
  };
  if (layers > 1) {
    add(dp + ", half of the layers", plain, fmt::format("model.layers={}", layers / 2));
  }
  if (sequence / 2 >= kLeastSequence) {
    add(dp + ", half of the sequence", plain, fmt::format("data.sequence={}", sequence / 2));
  }
  if (ranks > 1) {
    add(dp + ", zero 1", layout(ranks, 1, 1, 1));
    add(dp + ", zero 3", layout(ranks, 1, 1, 3));
    add(fmt::format("tp {}", ranks), layout(1, ranks, 1, 0));
    add(fmt::format("pp {}", ranks), layout(1, 1, ranks, 0));
  }
  return variants;
}

std::vector<MeasuredStep> short_trains(const ShortTrainsOptions& options, AppContext& context) {
  MpiSession& session = context.session();
  std::vector<Candidate> candidates = candidates_of(options, session.world().size());
  for (int round = 0; round < options.rounds; ++round) {
    for (Candidate& candidate : candidates) {
      if (!candidate.why_not.empty()) {
        continue;
      }
      if (session.world().rank() == 0) {
        say(fmt::format("calibrate: round {} of {}: {}, {}", round + 1, options.rounds,
                        candidate.config.filename().string(), candidate.variant.name));
      }
      try {
        if (auto measured = train_once(options, candidate, context)) {
          candidate.rounds.push_back(std::move(*measured));
        }
      } catch (const ConfigError& error) {  // on all ranks alike
        if (candidate.needed) {
          throw;
        }
        candidate.why_not = error.what();
      }
    }
  }
  std::vector<MeasuredStep> steps;
  for (Candidate& candidate : candidates) {
    if (!candidate.rounds.empty()) {
      steps.push_back(median_round(candidate));
    } else if (session.world().rank() == 0) {
      say(fmt::format("calibrate: left out {}, {}: {}", candidate.config.filename().string(),
                      candidate.variant.name, candidate.why_not));
    }
  }
  return steps;
}

}  // namespace trireme
