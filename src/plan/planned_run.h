// Says what the planner needs to know of a run: from its configuration, and from how it is divided
// among its ranks. Pure functions.
#pragma once

#include <string_view>

#include "src/plan/plan_layout.h"
#include "src/plan/search.h"
#include "src/train/run/layout.h"
#include "src/train/run/run_config.h"

namespace trireme {

PlanTask plan_task(const RunConfig& config);
// recompute: a word of train.recompute.
PlanRecompute plan_recompute(std::string_view recompute);
// Returns a configuration for a layout: its keys of `parallel`, the micro-batch and what is
// recomputed. Not checked.
RunConfig with_layout(RunConfig config, const PlanLayout& layout);
// Returns the division in the largest steps of the run.
PlanLayout plan_layout(const RunConfig& config, const Layout& layout);

}  // namespace trireme
