// `trireme bench pipeline`: the pipeline's runner and transport without a model: every rank is a
// stage whose steps take a given time, in which it sleeps. What they idle beyond what the
// simulation says is the price of runner and transport; more stages than cores disturb each other
// little.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "mpi/session/mpi_session.h"

namespace trireme {

struct BenchPipelineOptions {
  std::string schedule = "1f1b";
  int chunks = 1;                              // virtual stages a rank
  std::int64_t micro_batches = 8;              // a step
  double forward_ms = 20;                      // of a micro-batch on a rank, its chunks together
  double input_ms = 20;                        // the gradient of the input
  double weight_ms = 20;                       // those of the weights
  std::int64_t bytes = std::int64_t{3} << 19;  // of an activation
  int rounds = 7;                              // timed, after one that warms up
  std::string backend = "auto";
};

// One entry of results: {name, params, metrics}. Collective.
nlohmann::ordered_json bench_pipeline(const BenchPipelineOptions& options, MpiSession& session);

}  // namespace trireme
