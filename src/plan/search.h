// Finds all layouts of a run on a cluster, predicts and ranks them. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/plan/outlook.h"
#include "src/plan/plan_memory.h"

namespace trireme {

// PlanTask is a run that has to be planned.
struct PlanTask {
  PlanModel model;
  Software software;
  PlanPrecision precision = PlanPrecision::bf16;
  std::int64_t global_batch = 1;  // sequences
  double steps = 0;
  // If given, layouts differ in nothing of these.
  std::optional<std::int64_t> micro_batch = {};
  std::optional<PlanRecompute> recompute = {};
  // Whether dp has to be a power of two, as for the same bits (numerics.reproducibility elastic).
  bool powers_of_two = true;
  bool has_frozen = false;  // which the prediction leaves out
  std::optional<PlanModel> teacher = {};
};

// Returns the work of the task, which refers to both.
PlanWork work_of(const PlanTask& task, const Cluster& cluster);

struct PlanCandidate {
  PlanLayout layout;
  StepTime time;
  PlannedMemory memory;
  Outlook outlook;
  std::int64_t nodes = 1;
  bool is_counted = false;  // whether the memory was counted by the engine, not by formulas
  bool on_front = false;    // no other candidate is better in days, nodes and energy at once

  bool fits(const Cluster& cluster) const {
    return memory.total() <= static_cast<double>(cluster.device.memory);
  }
};

struct PlanResult {
  std::vector<PlanCandidate> candidates;  // that fit, the fastest first
  std::int64_t tried = 0;                 // layouts that divide the model
  std::optional<PlanCandidate> nearest;   // the one that needs least memory, if none fits
};

// Returns why a layout cannot divide the model or the batch, with the formula, or "".
std::string layout_fault(const PlanTask& task, const PlanLayout& layout);

// Returns the layouts of `ranks` ranks.
std::vector<PlanLayout> all_layouts(const PlanTask& task, const Cluster& cluster,
                                    std::int64_t ranks);

// nodes: numbers of nodes to try, each at most cluster.nodes. The schedules of the best candidates
// on each number of nodes are simulated, the others' idle times are formulas.
PlanResult plan_layouts(const PlanTask& task, const Cluster& cluster,
                        const std::vector<std::int64_t>& nodes);

// ranks: numbers of ranks to try.
PlanResult plan_ranks(const PlanTask& task, const Cluster& cluster,
                      const std::vector<std::int64_t>& ranks);

// Returns the prediction for one layout.
PlanCandidate candidate_of(const PlanTask& task, const Cluster& cluster, const PlanLayout& layout,
                           BubbleMethod method);

// Marks the candidates, which are sorted by days, that are on the front among these.
void mark_front(std::vector<PlanCandidate>& candidates);

// Returns warnings: what the prediction leaves out, and shapes that products compute slowly.
std::vector<std::string> plan_warnings(const PlanTask& task, const Cluster& cluster,
                                       const PlanLayout& layout);

// Returns suggestions, as sentences, for a run that no layout fits into memory.
std::vector<std::string> advice_to_fit(const PlanTask& task, const Cluster& cluster,
                                       const PlanResult& result, std::int64_t most_nodes);

}  // namespace trireme
