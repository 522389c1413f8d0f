#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "src/base/save_interval.h"
#include "src/base/units.h"
#include "src/plan/simulate/goodput.h"

namespace trireme {
namespace {

struct Variant {
  std::string name;
  JobModel model;
};

class Variants {
 public:
  explicit Variants(const JobModel& model) : model_(model) {}

  template <class Change>
  void add(std::string name, Change change) {
    Variant variant{std::move(name), model_};
    change(variant.model);
    all_.push_back(std::move(variant));
  }
  // Halves a time, if it is not zero.
  void halve(const char* what, const char* unit, double value, void (*change)(JobModel&)) {
    if (value > 0) {
      add(fmt::format("{} halved, to {:.4g} {}", what, value / 2, unit), change);
    }
  }
  std::vector<Variant> all() && { return std::move(all_); }

 private:
  const JobModel& model_;
  std::vector<Variant> all_;
};

void add_nodes(Variants& variants, const JobModel& model) {
  const std::int64_t more = std::max<std::int64_t>(1, (model.nodes + 99) / 100);
  variants.add(fmt::format("{} more (1 % of the nodes)", counted(more, "spare")),
               [more](JobModel& m) { m.spares += more; });
  variants.halve("time of a repair", "h", model.times.repair_hours,
                 [](JobModel& m) { m.times.repair_hours /= 2; });
  if (model.rates.lemon_share > 0 && model.rates.lemon_factor > 1) {
    variants.add("no node that fails more often than others", [](JobModel& m) {
      // The mean over all nodes falls to the rate of ordinary ones.
      const double ordinary = 1 / (1 + m.rates.lemon_share * (m.rates.lemon_factor - 1));
      for (double* rate : {&m.rates.process, &m.rates.hang, &m.rates.node, &m.rates.straggler}) {
        *rate *= ordinary;
      }
      m.rates.lemon_factor = 1;
    });
  }
}

void add_saves(Variants& variants, const JobModel& model) {
  const std::int64_t disk = model.disk_interval();
  const std::int64_t memory = model.memory_interval();
  if (disk > 1) {
    variants.add(fmt::format("saves on disk twice as often, every {}", counted(disk / 2, "step")),
                 [disk](JobModel& m) {
                   m.checkpoint.every = {disk / 2, ""};
                 });
  }
  if (memory > 1) {
    variants.add(
        fmt::format("saves in memory twice as often, every {}", counted(memory / 2, "step")),
        [memory](JobModel& m) {
          m.checkpoint.memory_every = {memory / 2, ""};
        });
  }
  if (memory == 0) {
    variants.add("saves in memory as well, with copies on a partner", [](JobModel& m) {
      m.checkpoint.memory_every = {0, "auto"};
      m.checkpoint.partner = true;
    });
  } else if (!model.checkpoint.partner) {
    variants.add("copies of saves in the memory of a partner",
                 [](JobModel& m) { m.checkpoint.partner = true; });
  }
  variants.halve("stall of a save", "s", model.checkpoint.stall,
                 [](JobModel& m) { m.checkpoint.stall /= 2; });
}

// Where recoveries come from disk, `auto` may save too seldom: it counts the whole time of a save
// as its cost, as a run does, because others use the disk, too.
void add_disk_interval(Variants& variants, const JobModel& model,
                       const std::vector<SimulatedRun>& runs) {
  double seconds = 0;
  double from_disk = 0;
  for (const SimulatedRun& run : runs) {
    seconds += run.wall;
    from_disk += static_cast<double>(run.from_disk);
  }
  if (!(from_disk > 0) || !model.checkpoint.every.is("auto") || model.memory_interval() == 0) {
    return;
  }
  const double best = std::max(model.checkpoint.disk_seconds,
                               best_interval(model.checkpoint.stall, seconds / from_disk));
  const auto steps = static_cast<std::int64_t>(std::ceil(best / model.step_seconds));
  if (steps < model.disk_interval()) {
    variants.add(fmt::format("saves on disk every {}: Daly's interval for the stall alone and for "
                             "recoveries from disk",
                             counted(steps, "step")),
                 [steps](JobModel& m) {
                   m.checkpoint.every = {steps, ""};
                 });
  }
}

void add_times(Variants& variants, const JobModel& model) {
  variants.halve("times to detect", "s for a hang", model.times.detect[1], [](JobModel& m) {
    for (double& seconds : m.times.detect) {
      seconds /= 2;
    }
  });
  variants.halve("time to exclude", "s", model.times.exclude,
                 [](JobModel& m) { m.times.exclude /= 2; });
  variants.halve("time to relaunch", "s", model.times.relaunch,
                 [](JobModel& m) { m.times.relaunch /= 2; });
  variants.halve("times to load", "s from disk", model.times.load_disk, [](JobModel& m) {
    m.times.load_disk /= 2;
    m.times.load_memory /= 2;
  });
  if (model.rates.straggler > 0 && !model.straggler.replace) {
    variants.add("stragglers replaced once they are noticed",
                 [](JobModel& m) { m.straggler.replace = true; });
  }
}

}  // namespace

std::vector<Measure> compare_measures(const JobModel& model, const std::vector<SimulatedRun>& runs,
                                      std::uint64_t seed, int threads) {
  Variants variants(model);
  add_nodes(variants, model);
  add_saves(variants, model);
  add_disk_interval(variants, model, runs);
  add_times(variants, model);
  std::vector<Measure> measures;
  const auto count = static_cast<double>(runs.size());
  for (const Variant& variant : std::move(variants).all()) {
    const std::vector<SimulatedRun> others =
        simulate_draws(variant.model, seed, static_cast<int>(runs.size()), threads);
    Measure measure{variant.name};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      measure.goodput += others[i].goodput() / count;
      measure.gain += (others[i].goodput() - runs[i].goodput()) / count;
    }
    double squares = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double rest = others[i].goodput() - runs[i].goodput() - measure.gain;
      squares += rest * rest;
    }
    measure.error = runs.size() > 1 ? std::sqrt(squares / (count - 1) / count) : 0;
    measures.push_back(std::move(measure));
  }
  std::stable_sort(measures.begin(), measures.end(),
                   [](const Measure& a, const Measure& b) { return a.gain > b.gain; });
  return measures;
}

}  // namespace trireme
