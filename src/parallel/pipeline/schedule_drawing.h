// A simulated schedule (or one that ran) as a figure: a row a stage, a box a step, as SVG text that
// needs nothing else and follows the reader's light or dark colours. A pure function of its data.
#pragma once

#include <string>

#include "src/parallel/pipeline/simulation.h"

namespace trireme {

std::string to_svg(const PipelineSimulation& simulation, const PipelineShape& shape,
                   const std::string& title);

}  // namespace trireme
