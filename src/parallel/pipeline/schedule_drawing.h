// Draws a schedule, simulated or measured, as SVG text: one row per stage, one box per step. The
// figure needs no other files and follows the reader's light or dark colours. A pure function.
#pragma once

#include <string>

#include "src/parallel/pipeline/simulation.h"

namespace trireme {

std::string to_svg(const PipelineSimulation& simulation, const PipelineShape& shape,
                   const std::string& title);

}  // namespace trireme
