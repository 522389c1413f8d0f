// The fault points of the whole program: those of the commands, joined with the lists of the rooms
// below. `trireme config faults` prints them, and plans are checked against them.
#pragma once

#include <span>

#include "src/base/fault_site.h"

namespace trireme {

// The points are in the order in which a run reaches their parts.
std::span<const FaultSite> fault_sites();

}  // namespace trireme
