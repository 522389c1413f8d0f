// `trireme bench pipeline` measures the pipeline's runner and transport without a model: every rank
// is a stage that sleeps for a given time in each step. Idle time beyond what the simulation
// predicts is the cost of the runner and transport. As the stages sleep, it also works with more
// stages than cores.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "mpi/session/mpi_session.h"

namespace trireme {

struct BenchPipelineOptions {
  std::string schedule = "1f1b";
  int chunks = 1;                              // per rank
  std::int64_t micro_batches = 8;              // per step
  double forward_ms = 20;                      // per micro-batch and rank, over all its chunks
  double input_ms = 20;                        // for the gradient of the input
  double weight_ms = 20;                       // for the gradients of the weights
  std::int64_t bytes = std::int64_t{3} << 19;  // size of an activation
  int rounds = 7;                              // timed rounds, after one for warm-up
  double duration = 0;                         // seconds of rounds, instead of `rounds` of them
  std::string backend = "auto";
};

// Returns one entry of the results: {name, params, metrics, measurement, samples}. Collective.
nlohmann::ordered_json bench_pipeline(const BenchPipelineOptions& options, MpiSession& session);

}  // namespace trireme
