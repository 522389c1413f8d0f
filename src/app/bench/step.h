// `trireme bench step`: the speed of a training step against the machine's own product rate,
// measured in the same run; under mpirun each rank computes its micro-batches and the gradients are
// reduced.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "src/app/app_context.h"

namespace trireme {

struct BenchStepOptions {
  std::string model = "gpt2-124m";
  std::string precision = "bf16";
  std::int64_t micro_batch = 1;    // sequences
  std::int64_t micro_batches = 1;  // a rank and step
  std::int64_t sequence = 1024;    // tokens
  int threads = 0;                 // a rank; 0: its share of the cores
  int rounds = 7;                  // timed steps, after one that warms up
};

// One entry of results: {name, params, metrics}. Collective.
nlohmann::ordered_json bench_step(const BenchStepOptions& options, AppContext& context);

}  // namespace trireme
