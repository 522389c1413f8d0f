// Counts the memory of a planned layout with the engine that trains, on a counting device
// (src/train/memory), instead of by the planner's formulas.
#pragma once

#include <optional>

#include "src/plan/search.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Returns the memory of the rank that needs most: of the first or the last pipeline stage. Returns
// nothing for a layout that is beyond the reach of one process: one whose step has more than
// kMostCountedPasses passes of layers on a rank, or that this program cannot train.
// reserved: as in PlannedMemory, from the cluster.
inline constexpr std::int64_t kMostCountedPasses = 20'000;
std::optional<PlannedMemory> counted_memory(const RunConfig& config, const Cluster& cluster,
                                            const PlanLayout& layout);

// Replaces the memory of the first `most` candidates and of the fastest on each number of nodes,
// and leaves out those that turn out not to fit. Of the nearest layout of a plan in which none
// fits, too.
void count_memory(const RunConfig& config, const Cluster& cluster, std::size_t most,
                  PlanResult& result);

}  // namespace trireme
