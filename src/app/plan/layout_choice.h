// Chooses the layout of a run whose configuration says `parallel: auto`, as `trireme plan` does:
// the one that is predicted to be fastest on the cluster of plan.cluster.
#pragma once

#include <string>
#include <vector>

#include "mpi/session/mpi_session.h"
#include "src/train/run/run_config.h"

namespace trireme {

struct LayoutChoice {
  std::vector<std::string> keys;    // "parallel.dp=2", ...
  std::string origin;               // of their values, for config.yaml
  std::string reason;               // a sentence for the log
  std::vector<std::string> doubts;  // why the cluster file may not fit these ranks
};

// Only the keys of `parallel` are chosen: the micro-batch and what is recomputed stay as they are
// configured, so that the numbers that a run computes depend on the choice as little as on any
// layout. Throws ConfigError if no layout of so many ranks fits, with what would help, and if
// plan.cluster is missing or no cluster file.
LayoutChoice choose_layout(const RunConfig& config, int ranks, int ranks_per_host);

// Loads a run's configuration, with the layout that rank 0 chooses if it says `parallel: auto`.
// notes: on rank 0, gets the reason and doubts for the log. Collective.
LoadedConfig load_with_layout(ConfigSources sources, MpiSession& session,
                              std::vector<std::string>& notes);

}  // namespace trireme
