// Shows what `trireme plan CONFIG` has found, as text and as JSON.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/plan/search.h"

namespace trireme {

// PlanView is a result with what it was made from.
struct PlanView {
  const PlanTask& task;
  const Cluster& cluster;
  const PlanResult& result;
  int top = 10;                          // candidates to show
  std::vector<std::string> advice = {};  // what would help, if no layout fits
};

void print_plan(const PlanView& view);
// Prints the formulas of a candidate with numbers put in.
void print_explanation(const PlanView& view, const PlanCandidate& candidate);
// Prints why a layout is not the best: it is impossible, does not fit, or is slower, and where.
// count: returns its memory as the engine counts it, or nothing if it cannot.
using MemoryCount = std::function<std::optional<PlannedMemory>(const PlanLayout& layout)>;
void print_why_not(const PlanView& view, const PlanLayout& layout, const MemoryCount& count);
// Holds the layouts to show, those on the front, the fastest on each number of nodes, and what the
// pictures of the best one need: the input of a report's plan_section().
nlohmann::ordered_json plan_json(const PlanView& view);

}  // namespace trireme
