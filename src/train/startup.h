// What a run says and checks before the first step: who the ranks are, whether they fit the cores,
// whether they were asked for the same and compute alike. Collective.
#pragma once

#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/base/log.h"
#include "src/train/run/run_config.h"

namespace trireme {

// The first lines of a start: what is to be trained, and what comes before the first step. For
// rank 0.
void announce_run(const RunConfig& config, int ranks, Log& log);

// One line a rank: rank, host, process, cores, sockets, NUMA nodes, threads, kernels; one a host:
// how it is built. Collective; the table is logged by rank 0, each rank notes its own line in its
// own log. Warns where ranks oversubscribe cores or are spread over the memory of several NUMA
// nodes.
void log_ranks(const std::vector<RankPlace>& places, Communicator& world, int threads,
               std::string_view kernels, Log& log);

// Warns of ranks that oversubscribe cores or may run far from their memory.
void warn_of_bindings(const std::vector<RankPlace>& places, int threads, Log& log);

// ConfigError where the files or the environment of the nodes give another configuration than rank
// 0's: names the first key that differs. Collective, before anything that depends on a key.
void check_same_config(Communicator& world, const LoadedConfig& loaded);

// The same for the program itself: `build` says what was built, when and with what. In `fast` a
// difference is only a warning.
void check_same_build(Communicator& world, const std::string& build,
                      const std::string& reproducibility, Log& log);

// ConfigError where ranks would compute with different kernels although the run promises bits that
// don't depend on the rank.
void check_same_kernels(Communicator& world, std::string_view kernels,
                        const std::string& reproducibility);

// Warns if matrix products use fewer instructions than this processor has. Called by rank 0.
void warn_of_lesser_instructions(std::string_view kernels, Log& log);

}  // namespace trireme
