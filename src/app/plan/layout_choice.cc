#include "src/app/plan/layout_choice.h"

#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "mpi/agreement.h"
#include "mpi/self_communicator.h"
#include "src/app/plan/counted_memory.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/plan/planned_run.h"
#include "src/train/prediction/run_prediction.h"
#include "src/train/saving/teacher_weights.h"

namespace trireme {
namespace {

// Returns why the program cannot train with the layout, or "".
std::string refusal(const RunConfig& config, const PlanLayout& layout, int ranks_per_host) {
  try {
    (void)make_layout(with_layout(config, layout), static_cast<int>(layout.ranks()),
                      ranks_per_host);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

// Returns the first candidate that the program can train with and that fits by its engine's count.
// Without one, result.nearest is the one that needs least memory, or why_not says why the program
// cannot train with the fastest.
const PlanCandidate* first_that_works(const RunConfig& config, const Cluster& cluster,
                                      int ranks_per_host, PlanResult& result,
                                      std::string& why_not) {
  for (PlanCandidate& candidate : result.candidates) {
    if (const std::string why = refusal(config, candidate.layout, ranks_per_host); !why.empty()) {
      why_not = why_not.empty() ? why : why_not;
      continue;
    }
    if (const auto memory = counted_memory(config, cluster, candidate.layout)) {
      candidate.memory = *memory;
    }
    if (candidate.fits(cluster)) {
      return &candidate;
    }
    if (!result.nearest || candidate.memory.total() < result.nearest->memory.total()) {
      result.nearest = candidate;
    }
  }
  return nullptr;
}

std::string reason_of(const Cluster& cluster, const PlanCandidate& chosen,
                      const PlanResult& result) {
  std::string text = fmt::format(
      "parallel: auto: {}, which is predicted to be the fastest of {} that fit, of {}, on '{}': "
      "{:.4g} s per step +- {:g} %",
      layout_text(chosen.layout), counted(std::ssize(result.candidates), "layout"), result.tried,
      printable(cluster.name), chosen.time.total(), cluster.residual_percent);
  for (const PlanCandidate& other : result.candidates) {
    const PlanLayout& a = other.layout;
    const PlanLayout& b = chosen.layout;
    if (a.dp != b.dp || a.tp != b.tp || a.pp != b.pp) {
      text += fmt::format("; the best with other degrees is {}, {:+.1f} %", layout_text(a),
                          100 * (other.time.total() / chosen.time.total() - 1));
      break;
    }
  }
  return text;
}

}  // namespace

LayoutChoice choose_layout(const RunConfig& asked, int ranks, int ranks_per_host) {
  SelfCommunicator self;
  const RunConfig config = with_teacher(asked, self);
  if (config.plan_cluster.empty()) {
    throw ConfigError(
        "parallel: auto: set plan.cluster to a cluster file, such as one that trireme plan "
        "calibrate has written, or give the degrees");
  }
  const Cluster cluster = load_cluster(config.plan_cluster);
  PlanTask task = plan_task(config);
  task.micro_batch = config.train.micro_batch;
  task.recompute = plan_recompute(config.train.recompute);
  PlanResult result = plan_ranks(task, cluster, {ranks});
  std::string why_not;
  const PlanCandidate* chosen = first_that_works(config, cluster, ranks_per_host, result, why_not);
  if (chosen == nullptr) {
    std::string text = fmt::format("parallel: auto: no layout of {} works on '{}'",
                                   counted(ranks, "rank"), printable(cluster.name));
    if (!result.nearest && !why_not.empty()) {
      throw ConfigError(text + ": " + why_not);
    }
    for (const std::string& advice : advice_to_fit(task, cluster, result, cluster.nodes)) {
      text += "\n  " + advice;
    }
    throw ConfigError(text);
  }
  const PlanLayout& l = chosen->layout;
  LayoutChoice choice;
  choice.keys = {fmt::format("parallel.dp={}", l.dp),
                 fmt::format("parallel.tp={}", l.tp),
                 fmt::format("parallel.pp={}", l.pp),
                 fmt::format("parallel.schedule={}", name_of(l.schedule)),
                 fmt::format("parallel.virtual_stages={}", l.virtual_stages),
                 fmt::format("parallel.zero={}", l.zero),
                 "parallel.layout=given"};
  choice.origin = fmt::format("parallel: auto, with {}", printable(cluster.name));
  choice.reason = reason_of(cluster, *chosen, result);
  choice.doubts = doubts_about(cluster, ranks, ranks_per_host, cluster.device.kind);
  return choice;
}

LoadedConfig load_with_layout(ConfigSources sources, MpiSession& session,
                              std::vector<std::string>& notes) {
  LoadedConfig loaded = load_run_config(sources);
  Communicator& world = session.world();
  const std::int64_t chooses = loaded.config.parallel.layout == "auto" ? 1 : 0;
  if (all_reduce_value(world, chooses, ReduceOp::max) == 0) {
    return loaded;
  }
  const std::string text = run_on_root(world, [&] {
    const LayoutChoice choice =
        choose_layout(loaded.config, world.size(), session.place().local_size);
    notes = choice.doubts;
    notes.insert(notes.begin(), choice.reason);
    return fmt::format("{}\n{}", choice.origin, fmt::join(choice.keys, "\n"));
  });
  std::istringstream lines(text);
  std::getline(lines, sources.chosen_by);
  for (std::string key; std::getline(lines, key);) {
    sources.chosen.push_back(key);
  }
  return load_run_config(sources);
}

}  // namespace trireme
