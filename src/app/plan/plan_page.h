// Shows a plan as a page with pictures, for `trireme plan CONFIG --html`.
#pragma once

#include "src/app/plan/layouts_report.h"
#include "src/report/document.h"

namespace trireme {

// The timeline is that of the best layout, and the goodput that of its simulated run, with failures
// of nodes at the rate of the cluster file.
Document plan_page(const PlanView& view);

}  // namespace trireme
