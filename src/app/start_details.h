// Says what the audit log records about a start of a training run. A pure function, except that it
// reads the environment.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mpi/topology.h"
#include "src/train/run/run_config.h"

namespace trireme {

// places: of all ranks, in rank order.
nlohmann::ordered_json start_details(const RunConfig& config,
                                     const std::vector<std::string>& arguments,
                                     const std::vector<RankPlace>& places);

}  // namespace trireme
