// Draws the results of `trireme scale` for a Document. A pure function.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/report/document.h"

namespace trireme {

// results: those named "scale", each with objects params and metrics.
void add_scale_figures(DocSection& section, const std::vector<const nlohmann::json*>& results);

}  // namespace trireme
