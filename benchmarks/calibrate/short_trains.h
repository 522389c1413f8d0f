// Trains some steps of configurations in several variants, and tells where the time of a step went,
// so that the factors of a cluster file can be fitted to them. On several ranks, each variant is a
// layout that uses all of them along one axis.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/app/command/app_context.h"
#include "src/plan/measured_step.h"

namespace trireme {

struct ShortTrainsOptions {
  std::vector<std::filesystem::path> configs;
  std::vector<std::string> arguments;  // key=value, for all of them
  std::filesystem::path folder = ".";  // for the runs' files, on a file system that all nodes share
  std::int64_t steps = 10;             // timed, of each short run
  int rounds = 3;                      // in which all variants take turns
};

// A variant of a configuration: what differs from it.
struct TrainVariant {
  std::string name;                    // "dp 2, half of the layers"
  std::vector<std::string> arguments;  // key=value
};

// Returns the variants for so many ranks. layers, sequence: of the model. The first one is the
// model as it is, in a layout that is always possible. A pure function.
std::vector<TrainVariant> train_variants(int ranks, std::int64_t layers, std::int64_t sequence);

// Returns of each variant the round whose step time is the median. Variants that a model does not
// allow, such as tp with one head, are left out, but not the first one. The same on all ranks.
// Collective.
std::vector<MeasuredStep> short_trains(const ShortTrainsOptions& options, AppContext& context);

}  // namespace trireme
