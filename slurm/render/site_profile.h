// SiteProfile: what a job script has to know of a cluster, read from a YAML file such as those of
// configs/cluster/. Plain values.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trireme {

struct SiteProfile {
  struct Slurm {
    std::string partition, account, qos;  // empty: the cluster's own default
    std::string time = "24:00:00";
    std::string memory = "0";  // a node's, as --mem takes it; 0: all of it
    bool exclusive = true;
    std::string requeue = "requeue";   // or "chain", "none"
    int max_restarts = 5;              // after faults; saved jobs are requeued without a limit
    double step_seconds = 0;           // 0: as earlier starts of the run measured
    double save_seconds = 0;           // the same
    std::vector<std::string> options;  // more of sbatch's: "--constraint=ib"
  };
  struct Node {
    int ranks = 1;
    int cpus_per_rank = 1;
    int gpus = 0;
    std::string scratch;  // a folder that each node has for itself; empty: none
  };
  struct Launch {
    std::string launcher = "mpirun";  // or "srun"
    std::string mpi = "pmix";         // srun --mpi=
    std::string binding = "core";     // or "numa", "none"
    std::vector<std::string> arguments;
    std::string health;     // of supervised jobs: a node's check, a command; empty: none
    std::string site_list;  // of supervised jobs: a file of nodes that have failed; empty: none
  };
  struct Environment {
    std::string program = "trireme";
    std::vector<std::string> source;     // files of shell code that the script reads first
    std::vector<std::string> modules;    // module load
    std::vector<std::string> variables;  // NAME=VALUE
  };

  Slurm slurm;
  Node node;
  Launch launch;
  Environment environment;
};

// ConfigError with all that is wrong: file, line, key, value, what is allowed.
SiteProfile load_site_profile(const std::filesystem::path& file);

}  // namespace trireme
