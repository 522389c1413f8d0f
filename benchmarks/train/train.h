// `trireme bench train` runs a fixed number of steps of a configuration, in a folder of its own
// that is removed at the end, and tells where the time of a step goes. The parts are the means over
// the ranks, and add up to the step.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/train/mllog.h"
#include "src/app/command/app_context.h"

namespace trireme {

struct MeasuredStep;

struct BenchTrainOptions {
  std::filesystem::path config;
  std::vector<std::string> arguments;  // key=value
  std::filesystem::path folder = ".";  // for the run's files, on a file system that all nodes share
  std::int64_t steps = 20;
  std::int64_t warmup = 2;  // steps before them
  std::optional<MlLogOptions> mllog;
  // Called on every rank with where the time of the steps went; may be empty.
  std::function<void(const MeasuredStep& measured)> measured = {};
};

// Returns one entry {name: train, ...}. Writes MLPerf's log on rank 0 if one is wanted. Collective.
nlohmann::ordered_json bench_train(const BenchTrainOptions& options, AppContext& context);

}  // namespace trireme
