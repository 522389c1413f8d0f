// Compares nodes with each other: versions, instruction sets, clocks, overloaded cores. Pure
// functions of the facts that each rank has reported.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "slurm/doctor/finding.h"

namespace trireme {

struct RankFacts {
  std::string host;
  std::string build;               // version, commit and digest of the program's file
  std::string mpi;                 // version of the MPI library
  std::string kernels;             // kernels and instruction set, from kernels_text()
  double clock_ahead_seconds = 0;  // wall clock, relative to rank 0
  int threads = 1;                 // compute threads of this rank
  int cores = 1;                   // cores on which this rank may run
  int sharers = 1;                 // number of ranks that may run on the same cores
  bool shares_run_dir = true;      // whether it sees what rank 0 writes there
  bool shares_checkpoint_dir = true;
};

nlohmann::json to_json(const RankFacts& facts);
RankFacts facts_from_json(const nlohmann::json& json);

// ranks: sorted by rank, at least one. With `reproducibility` "fast", different kernels are a
// warning only.
std::vector<Finding> compare_versions(const std::vector<RankFacts>& ranks,
                                      const std::string& reproducibility);
std::vector<Finding> compare_clocks(const std::vector<RankFacts>& ranks);
std::vector<Finding> check_cores(const std::vector<RankFacts>& ranks);
std::vector<Finding> check_shared_folder(const std::vector<RankFacts>& ranks);

}  // namespace trireme
