// Describes which ranks form which groups, on which hosts and sockets they run, and what that means
// for the traffic between them (parallel.placement: print). Pure functions of the grid and the
// places.
#pragma once

#include <string>
#include <vector>

#include "mpi/topology.h"
#include "src/parallel/process_grid.h"

namespace trireme {

// Returns "dp group of ranks 0-3: host a, socket 0 (0-1); host b, socket 0 (2-3): ..." ranks: of
// the world, in group order. places: by rank of the world.
std::string describe_group(const std::string& axis, const std::vector<int>& ranks,
                           const std::vector<RankPlace>& places);

// Returns a line with the rule, and one for each group of every axis with more than one rank.
std::vector<std::string> describe_placement(const ProcessGrid& grid,
                                            const std::vector<RankPlace>& places);

}  // namespace trireme
