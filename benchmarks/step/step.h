// `trireme bench step` measures the speed of a training step under any layout, against the
// machine's own product rate in the same run. The steps are those of `trireme train`, on random
// tokens.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "src/app/command/app_context.h"

namespace trireme {

struct BenchStepOptions {
  std::string model = "gpt2-124m";
  std::string precision = "bf16";
  std::int64_t micro_batch = 1;    // in samples
  std::int64_t micro_batches = 1;  // per replica and step
  std::int64_t sequence = 0;       // tokens per sample; 0: 1024, but at most the model's context
  int threads = 0;                 // per rank; 0 for its share of the cores
  int rounds = 7;                  // timed rounds, after one for warm-up
  double duration = 0;             // seconds of timed rounds, instead of `rounds` of them
  int steps = 1;                   // steps per round, back to back
  int dp = 0;                      // 0 for as many as tp and pp leave room for
  int tp = 1;
  int pp = 1;
  std::string schedule = "1f1b";
  int virtual_stages = 1;
  int zero = 0;
  std::string recompute = "none";
  std::string backend = "auto";
};

// Returns one entry of the results: {name, params, metrics, measurement, samples}. Collective.
nlohmann::ordered_json bench_step(const BenchStepOptions& options, AppContext& context);

}  // namespace trireme
