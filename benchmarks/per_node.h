// Runs a benchmark of one process on each node of a job: by one process alone, or by one rank per
// node, all at once.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "src/app/command/app_context.h"

namespace trireme {

struct NodeReport {
  nlohmann::ordered_json results;  // entries {name, params, ...}
  std::string text;                // tables, for people
};

// Returns whether a launcher has started several ranks. Does not start MPI.
bool has_several_ranks();

// What happens if a node has more than one rank: all ranks throw ConfigError, or the first one
// measures while the others sleep.
enum class SecondRank { refused, waits };

// Returns the results of all nodes, each with the parameter "host", the name of its node, and the
// tables with a line per node between them; the same on all ranks. Collective if there are several
// ranks.
NodeReport on_each_node(AppContext& context, SecondRank second,
                        const std::function<NodeReport()>& measure);

// Does the same on every rank at once, and adds the parameter "rank", too. Collective.
NodeReport on_each_rank(AppContext& context, const std::function<NodeReport()>& measure);

}  // namespace trireme
