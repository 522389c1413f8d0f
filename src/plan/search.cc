#include "src/plan/search.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kSimulated = 12;  // candidates of each number of nodes
constexpr std::int64_t kMostVirtualStages = 8;
constexpr std::int64_t kMostStages = 64;
constexpr std::int64_t kMostMicroBatch = 16;

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) {
      found.push_back(d);
    }
  }
  return found;
}

bool is_power_of_two(std::int64_t number) { return (number & (number - 1)) == 0; }

std::int64_t nodes_of(const Cluster& cluster, std::int64_t ranks) {
  return (ranks + cluster.device.per_node - 1) / cluster.device.per_node;
}

// Appends the variants of a grid: micro-batch, ZeRO, recomputation.
void add_variants(const PlanTask& task, PlanLayout layout, std::vector<PlanLayout>& layouts) {
  const std::int64_t first = task.micro_batch.value_or(1);
  const std::int64_t last = task.micro_batch.value_or(kMostMicroBatch);
  for (std::int64_t b = first; b <= last; b *= 2) {
    if (task.global_batch % (layout.dp * b) != 0) {
      break;
    }
    layout.micro_batch = b;
    layout.micro_batches = task.global_batch / (layout.dp * b);
    for (const int zero : {0, 1, 2, 3}) {
      if (zero > 0 && layout.dp == 1) {
        break;
      }
      layout.zero = zero;
      for (const auto recompute :
           {PlanRecompute::none, PlanRecompute::selective, PlanRecompute::full}) {
        layout.recompute = recompute;
        if (task.recompute.value_or(recompute) == recompute && layout_fault(task, layout).empty()) {
          layouts.push_back(layout);
        }
      }
    }
  }
}

void sort_by_time(std::vector<PlanCandidate>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const PlanCandidate& a, const PlanCandidate& b) {
                     return a.outlook.days < b.outlook.days;
                   });
}

}  // namespace

PlanWork work_of(const PlanTask& task, const Cluster& cluster) {
  return {task.model, cluster, task.software, task.precision,
          task.teacher ? &*task.teacher : nullptr};
}

// Goes through the candidates by days and asks for each whether one before it, on as many nodes or
// fewer, needs no more energy.
void mark_front(std::vector<PlanCandidate>& candidates) {
  std::vector<PlanCandidate*> order;
  for (PlanCandidate& candidate : candidates) {
    candidate.on_front = false;
    order.push_back(&candidate);
  }
  const auto key = [](const PlanCandidate& c) {
    return std::tuple(c.outlook.days, c.nodes, c.outlook.kilowatt_hours);
  };
  std::stable_sort(order.begin(), order.end(), [&](const PlanCandidate* a, const PlanCandidate* b) {
    return key(*a) < key(*b);
  });
  std::map<std::int64_t, double> least;  // energy so far, by number of nodes
  for (PlanCandidate* candidate : order) {
    const double energy = candidate->outlook.kilowatt_hours;
    const auto end = least.upper_bound(candidate->nodes);
    candidate->on_front =
        std::none_of(least.begin(), end, [&](const auto& each) { return each.second <= energy; });
    const auto [own, is_new] = least.emplace(candidate->nodes, energy);
    own->second = std::min(own->second, energy);
  }
}

std::string layout_fault(const PlanTask& task, const PlanLayout& layout) {
  const PlanModel& m = task.model;
  const auto undivided = [&](const char* what, std::int64_t whole, const char* by,
                             std::int64_t parts) {
    return fmt::format("{} {} is not a multiple of {} {}", what, whole, by, parts);
  };
  for (const auto& [what, whole] : {std::pair("heads", m.heads), std::pair("ffn", m.ffn)}) {
    if (whole % layout.tp != 0) {
      return undivided(what, whole, "tp", layout.tp);
    }
  }
  if (m.kv_heads % layout.tp != 0 && layout.tp % m.kv_heads != 0) {
    return undivided("kv_heads", m.kv_heads, "tp", layout.tp);
  }
  if (task.teacher && layout.tp > 1) {
    return fmt::format("tp {} is not 1, which a teacher (distill.teacher) needs", layout.tp);
  }
  if (layout.pp * layout.virtual_stages > 2 * m.layers) {
    return fmt::format("pp {} x v {} is more than the 2 x {} halves of the model's layers",
                       layout.pp, layout.virtual_stages, m.layers);
  }
  if (task.global_batch != layout.global_batch()) {
    return undivided("global_batch", task.global_batch, "dp x micro_batch",
                     layout.dp * layout.micro_batch);
  }
  if (task.powers_of_two && !is_power_of_two(layout.dp)) {
    return fmt::format(
        "dp {} is not a power of two, which the same bits need "
        "(numerics.reproducibility: elastic)",
        layout.dp);
  }
  try {
    check_pipeline(layout.schedule,
                   {static_cast<int>(layout.pp), static_cast<int>(layout.virtual_stages),
                    layout.micro_batches, m.tied});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return layout.virtual_stages > 1 && layout.pp == 1 ? "virtual stages need pp of at least 2" : "";
}

std::vector<PlanLayout> all_layouts(const PlanTask& task, const Cluster& cluster,
                                    std::int64_t ranks) {
  std::vector<PlanLayout> layouts;
  for (const std::int64_t tp : divisors(ranks, cluster.device.per_node)) {
    for (const std::int64_t pp : divisors(ranks / tp, kMostStages)) {
      PlanLayout layout;
      layout.tp = tp;
      layout.pp = pp;
      layout.dp = ranks / tp / pp;
      layout.sequence_parallel = tp > 1 && task.model.sequence % tp == 0;
      if (task.global_batch % layout.dp != 0) {
        continue;
      }
      layout.schedule = PipelineSchedule::one_f_one_b;
      add_variants(task, layout, layouts);
      if (pp == 1) {
        continue;
      }
      layout.schedule = PipelineSchedule::zero_bubble;
      add_variants(task, layout, layouts);
      layout.schedule = PipelineSchedule::interleaved;
      for (std::int64_t v = 2; v <= kMostVirtualStages; v *= 2) {
        layout.virtual_stages = v;
        add_variants(task, layout, layouts);
      }
    }
  }
  return layouts;
}

PlanCandidate candidate_of(const PlanTask& task, const Cluster& cluster, const PlanLayout& layout,
                           BubbleMethod method) {
  PlanCandidate candidate;
  candidate.layout = layout;
  candidate.time = step_time(work_of(task, cluster), layout, method);
  candidate.memory = rank_memory(work_of(task, cluster), layout);
  candidate.nodes = nodes_of(cluster, layout.ranks());
  candidate.outlook = outlook(
      cluster, {task.model.parameters(), candidate.time.total(), task.steps,
                static_cast<double>(candidate.nodes), layout.ranks(), candidate.time.waiting()});
  const Outlook& o = candidate.outlook;
  if (o.interval_seconds > 0) {
    candidate.time.checkpoint = o.stall_seconds * candidate.time.total() / o.interval_seconds;
  }
  return candidate;
}

PlanResult plan_layouts(const PlanTask& task, const Cluster& cluster,
                        const std::vector<std::int64_t>& nodes) {
  std::vector<std::int64_t> ranks;
  for (const std::int64_t each : nodes) {
    ranks.push_back(each * cluster.device.per_node);
  }
  return plan_ranks(task, cluster, ranks);
}

PlanResult plan_ranks(const PlanTask& task, const Cluster& cluster,
                      const std::vector<std::int64_t>& ranks) {
  PlanResult result;
  for (const std::int64_t each : ranks) {
    for (const PlanLayout& layout : all_layouts(task, cluster, each)) {
      ++result.tried;
      const PlannedMemory memory = rank_memory(work_of(task, cluster), layout);
      if (memory.total() <= static_cast<double>(cluster.device.memory)) {
        result.candidates.push_back(candidate_of(task, cluster, layout, BubbleMethod::formula));
      } else if (!result.nearest || memory.total() < result.nearest->memory.total()) {
        result.nearest = candidate_of(task, cluster, layout, BubbleMethod::formula);
      }
    }
  }
  sort_by_time(result.candidates);
  std::map<std::int64_t, std::size_t> simulated;  // by number of nodes
  for (PlanCandidate& candidate : result.candidates) {
    if (simulated[candidate.nodes]++ < kSimulated) {
      candidate = candidate_of(task, cluster, candidate.layout, BubbleMethod::simulated);
    }
  }
  sort_by_time(result.candidates);
  mark_front(result.candidates);
  if (!result.candidates.empty()) {
    result.nearest.reset();
  }
  return result;
}

}  // namespace trireme
