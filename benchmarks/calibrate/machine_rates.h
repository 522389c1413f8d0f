// Measures the rates of a machine for a cluster file, with the rooms of `trireme bench`. All ranks
// compute at once, as in training, so the rates are those of a rank with its share of a node.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/gemm/product_shapes.h"
#include "src/app/command/app_context.h"
#include "src/plan/cluster_file.h"

namespace trireme {

struct MachineRatesOptions {
  std::vector<ProductShape> shapes;    // of the models, beside squares
  std::filesystem::path folder = ".";  // on the file system that runs write to
  double seconds = 30;                 // of all measurements together
  int threads = 0;                     // per rank; 0 for its share of the cores
};

struct MachineRates {
  Cluster cluster;
  // By key of the cluster file: where the figure comes from.
  std::map<std::string, std::string> remarks;
};

// base: gives all figures that are not measured. Throws ConfigError if the hosts have different
// numbers of ranks, and DeviceError if results came out wrong. Collective.
MachineRates measure_machine(const Cluster& base, const MachineRatesOptions& options,
                             AppContext& context);

}  // namespace trireme
