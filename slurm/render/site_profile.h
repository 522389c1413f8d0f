// SiteProfile describes a cluster for job scripts. It is read from a YAML file such as those of
// configs/site/. Plain values.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trireme {

struct SiteProfile {
  struct Slurm {
    std::string partition, account, qos;  // empty for the cluster's default
    std::string constraint;               // features of the nodes, in the notation of --constraint
    std::string time = "24:00:00";
    std::string memory = "0";  // per node, in the notation of --mem; 0 for all of it
    bool exclusive = true;
    std::string requeue = "requeue";  // "requeue", "chain" or "none"
    int max_restarts = 5;     // after faults; jobs that have saved are requeued without a limit
    double step_seconds = 0;  // 0 for the value measured by earlier starts
    double save_seconds = 0;  // 0 for the value measured by earlier starts
    std::vector<std::string> options;  // further options of sbatch, such as "--constraint=ib"
  };
  struct Node {
    int ranks = 1;
    int cpus_per_rank = 1;
    int gpus = 0;
    std::string gpu_type;  // as in gres.conf, such as "a100" or "1g.10gb"; empty for any
    std::string gpu_request = "per-node";  // "per-node", "per-task", "gres" or "mps"
    int mps_shares = 0;                    // of one GPU, for "mps"
    std::string scratch;                   // a folder local to each node; may be empty
  };
  struct Launch {
    std::string launcher = "mpirun";  // "mpirun" or "srun"
    std::string mpi = "pmix";         // value of srun --mpi=
    std::string binding = "core";     // "core", "numa" or "none"
    std::string gpu_bind;             // value of srun --gpu-bind=; empty: Slurm's default
    std::vector<std::string> arguments;
    std::string health;     // shell command that checks a node of a supervised job; may be empty
    std::string site_list;  // site list of supervised jobs; may be empty
  };
  struct Environment {
    std::string program = "trireme";
    std::vector<std::string> source;     // shell files that the script sources first
    std::vector<std::string> modules;    // for `module load`
    std::vector<std::string> variables;  // in the form NAME=VALUE
  };

  Slurm slurm;
  Node node;
  Launch launch;
  Environment environment;
};

// Throws a ConfigError that lists all problems: file, line, key, value and what is allowed.
SiteProfile load_site_profile(const std::filesystem::path& file);

}  // namespace trireme
