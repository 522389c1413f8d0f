#include "src/train/recovery/replay_start.h"

#include <string>

#include <nlohmann/json.hpp>

#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

// Returns nothing if the step has no valid manifest, or its counters are invalid.
std::optional<TrainingCounters> known_counters(const StepFolder& step) {
  if (!step.manifest) {
    return std::nullopt;
  }
  try {
    return counters_of(step.manifest->meta);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<StartPoint> replay_start(const std::filesystem::path& folder,
                                       const TrainingCounters& now, std::int64_t last) {
  std::vector<DataWindow> left_out = now.left_out;
  std::erase_if(left_out, [last](const DataWindow& window) { return window.step >= last; });
  std::optional<StartPoint> newest;
  for (const StepFolder& step : list_steps(folder)) {
    const std::optional<TrainingCounters> counters = known_counters(step);
    if (counters && counters->left_out == left_out && counters->step < last &&
        counters->step <= now.step && (!newest || newest->step < counters->step)) {
      newest = StartPoint{.step = counters->step, .from_seed = false};
    }
  }
  if (!newest && left_out.empty()) {
    newest = StartPoint{.step = 0, .from_seed = true};
  }
  return newest;
}

std::optional<StartPoint> agreed_replay_start(Communicator& world,
                                              const std::filesystem::path& folder,
                                              const TrainingCounters& now, std::int64_t last) {
  constexpr std::string_view kSeed = "seed";
  const std::string text = run_on_root(world, [&] {
    const auto start = replay_start(folder, now, last);
    return !start             ? std::string()
           : start->from_seed ? std::string(kSeed)
                              : std::to_string(start->step);
  });
  if (text.empty()) {
    return std::nullopt;
  }
  const bool from_seed = text == kSeed;
  return StartPoint{.step = from_seed ? 0 : std::stoll(text), .from_seed = from_seed};
}

}  // namespace trireme
