// Collects what the provenance of a run's checkpoints says about a start of the run.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/train/run/run_config.h"
#include "src/train/saving/checkpoint_provenance.h"

namespace trireme {

// Loads audit.key if the configuration names one: throws what SigningKey::load() throws.
// arguments: those of the command line.
RunOrigin origin_of(const LoadedConfig& loaded, const std::vector<std::string>& arguments,
                    const std::vector<RankPlace>& places);

// Collective; called when all libraries are loaded. Rank 0 writes its bill of materials into the
// run's folder, unless an earlier start with the same libraries has, and notes it in `origin`.
// Returns `origin`; null, and writes nothing, if the configuration names no key that signs.
const RunOrigin* write_bill_of_materials(const RunConfig& config, Communicator& world,
                                         RunOrigin& origin);

// Returns what the audit log says about the start.
nlohmann::ordered_json start_details(const RunConfig& config, const RunOrigin& origin);

}  // namespace trireme
