// Computes what the pictures of a plan show beside its layouts, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "src/app/plan/layouts_report.h"

namespace trireme {

// When each stage computes what in a step of the layout, and what follows the last backward. Times
// are in seconds from the start of the step.
nlohmann::ordered_json timeline_json(const PlanView& view, const PlanCandidate& candidate);

// The distribution of goodput over simulations of the layout's run, with failures of nodes at the
// rate of the cluster file; null if that is 0. A run is simulated for at most a quarter of a year.
nlohmann::ordered_json goodput_json(const PlanView& view, const PlanCandidate& candidate);

}  // namespace trireme
