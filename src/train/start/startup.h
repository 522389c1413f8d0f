// Reports and checks the start of a run, before the first step: where the ranks are, whether they
// fit the cores, and whether all have the same configuration, build and kernels.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/base/log.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Logs the first lines of a start: what is trained, and what is done before the first step. Called
// on rank 0.
void announce_run(const RunConfig& config, int ranks, Log& log);

// Collective. Rank 0 logs a table with a line per rank (rank, host, process, cores, sockets, NUMA
// nodes, threads, kernels) and a line per host with its hardware; every rank writes its own line to
// its own log. Then calls warn_of_bindings().
void log_ranks(const std::vector<RankPlace>& places, Communicator& world, int threads,
               std::string_view kernels, Log& log);

// Warns if ranks oversubscribe cores, or are spread over several NUMA nodes of a shared host.
void warn_of_bindings(const std::vector<RankPlace>& places, int threads, Log& log);

// Throws ConfigError if run.dir or checkpoint.dir cannot be written, because it lies on a read-only
// file system or a part of its path is not a folder.
void check_folders(const RunConfig& config);

// Returns whether an earlier start has finished all steps and its last checkpoint still exists, and
// no other step to resume from is requested. Throws DataError if the file DONE is damaged.
bool is_finished(const RunConfig& config);

// Throws ConfigError if the files or the environment of a node give another configuration than that
// of rank 0, and names the first key that differs. Collective; called before anything that depends
// on a key.
void check_same_config(Communicator& world, const LoadedConfig& loaded);

// Returns a warning for each variable of the environment whose name is nearly that of a switch,
// such as TRIREME_KERNEL. (ConfigBinder checks the names with "__", which set keys.)
std::vector<std::string> misspelt_switches(const char* const* environment);

// Collective. Throws ConfigError if ranks run different builds of the program, or only warns if
// `reproducibility` is "fast". `build` says what was built, when and with what libraries.
void check_same_build(Communicator& world, const nlohmann::json& build,
                      const std::string& reproducibility, Log& log);

// Collective. Throws ConfigError if ranks have different kernels, unless `reproducibility` is
// "fast".
void check_same_kernels(Communicator& world, std::string_view kernels,
                        const std::string& reproducibility);

// Warns if matrix products use fewer instructions than this processor has. Called on rank 0.
void warn_of_lesser_instructions(std::string_view kernels, Log& log);

}  // namespace trireme
