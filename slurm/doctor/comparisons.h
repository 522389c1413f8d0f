// What only shows when nodes are compared: versions, instruction sets, clocks, crowded cores. Pure
// functions of what the ranks said of themselves.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "slurm/doctor/finding.h"

namespace trireme {

struct RankFacts {
  std::string host;
  std::string build;               // version, commit and digest of the program's file
  std::string mpi;                 // of the MPI library
  std::string kernels;             // and their instructions: kernels_text()
  double clock_ahead_seconds = 0;  // wall clock, of rank 0's
  int threads = 1;                 // that this rank computes with
  int cores = 1;                   // it may run on
  int sharers = 1;                 // ranks that may run on the same ones
  bool shares_run_dir = true;      // it sees what rank 0 writes there
  bool shares_checkpoint_dir = true;
};

nlohmann::json to_json(const RankFacts& facts);
RankFacts facts_from_json(const nlohmann::json& json);

// ranks: by rank, at least one. reproducibility: fast makes other kernels a warning.
std::vector<Finding> compare_versions(const std::vector<RankFacts>& ranks,
                                      const std::string& reproducibility);
std::vector<Finding> compare_clocks(const std::vector<RankFacts>& ranks);
std::vector<Finding> check_cores(const std::vector<RankFacts>& ranks);
std::vector<Finding> check_shared_folder(const std::vector<RankFacts>& ranks);

}  // namespace trireme
