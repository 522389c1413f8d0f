// Measures the rates of a machine for a cluster file, with the rooms of `trireme bench`: those of
// its processors, or of the GPUs on which its ranks compute. All ranks compute at once, as in
// training, so the rates of processors are those of a rank with its share of a node.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/calibrate/link_rates.h"
#include "benchmarks/gemm/product_shapes.h"
#include "mpi/operation_request.h"
#include "src/app/command/app_context.h"
#include "src/plan/cluster_file.h"

namespace trireme {

// How much a measurement takes at a time. A device needs more than a core to reach its rate.
struct RatesSizes {
  std::int64_t square = 0;       // of the large product
  std::int64_t array_bytes = 0;  // of STREAM
  TransferSizes transfers;
};
inline constexpr RatesSizes kSizesOnCpu{
    1024, std::int64_t{64} << 20, {.sum_bytes = std::int64_t{16} << 20}};
inline constexpr RatesSizes kSizesOnGpu{
    8192, std::int64_t{1} << 30, {.sum_bytes = std::int64_t{256} << 20}};

struct MachineRatesOptions {
  std::string device = "cpu";  // a word of train.device
  RatesSizes on_gpu = kSizesOnGpu;
  bool fp8 = false;                     // whether products in fp8 are measured, too, on GPUs
  SumOrder sum_order = SumOrder::tree;  // between GPUs
  std::vector<ProductShape> shapes;     // of the models, beside squares
  std::filesystem::path folder = ".";   // on the file system that runs write to
  double seconds = 30;                  // of all measurements together
  int threads = 0;                      // per rank; 0 for its share of the cores
};

struct MachineRates {
  Cluster cluster;
  // By key of the cluster file: where the figure comes from.
  std::map<std::string, std::string> remarks;
};

// base: gives all figures that are not measured. Throws ConfigError if the hosts have different
// numbers of ranks, DeviceError if results came out wrong, and what agree_on_devices() throws
// (src/train/start/rank_devices.h). Collective.
MachineRates measure_machine(const Cluster& base, const MachineRatesOptions& options,
                             AppContext& context);

}  // namespace trireme
