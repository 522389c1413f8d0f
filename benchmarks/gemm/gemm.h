// `trireme bench gemm` measures the rate of matrix products on all ranks at once, on the CPU or on
// the ranks' GPUs, with the kernels of training, and verifies the results. Rates count 2 M N K
// operations per product. On a GPU, products are queued one after the other, as in a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/gemm/product_shapes.h"
#include "benchmarks/measured_rows.h"
#include "slurm/health/measures.h"
#include "src/app/command/app_context.h"
#include "src/device/device.h"

namespace trireme {

struct BenchGemmOptions {
  Device device = Device::cpu();          // of this rank
  std::vector<std::int64_t> sizes;        // of squares
  std::string model;                      // a preset, whose shapes are measured, too; "" for none
  std::int64_t tokens = 1024;             // of a micro-batch of the model
  std::vector<ProductShape> shapes = {};  // that are measured, too
  std::vector<std::string> precisions = {"bf16", "fp32"};
  int threads = 0;  // per rank; 0 for its share of the cores
  // Seconds of all products together, warm-up included; 0 until each rate is known to 5 %. A
  // product is computed at least four times, however long that takes.
  double duration = 0;
  // Rates that `trireme health --save-baseline` has measured with all cores of rank 0's node.
  std::optional<Measures> baseline;
  MeasuredRows* rows = nullptr;  // also gets each row once it is measured, unless null
};

struct BenchGemmResult {
  nlohmann::ordered_json results;  // entries {name: gemm, params, metrics, measurement, samples}
  std::int64_t wrong = 0;          // elements, over all products and ranks
  // The lowest rate as a fraction of the baseline's; nothing without a rate to compare with.
  std::optional<double> least_fraction;
};

// Returns the names of the baseline's rates whose sum the `ranks` ranks of a host are compared
// with: that of all cores, or those of its first GPUs.
std::vector<std::string> baseline_rates(const std::string& precision, Device device, int ranks);

// Prints a table on rank 0. Collective.
BenchGemmResult bench_gemm(const BenchGemmOptions& options, MpiSession& session);

}  // namespace trireme
