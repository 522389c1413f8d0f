// `trireme bench pairs` measures every pair of ranks (or of one rank per host) once, in rounds of
// as many disjoint pairs as possible. Each pair measures latency and the bandwidth in both
// directions. It reports slow pairs and the member that they share.
#pragma once

#include <nlohmann/json.hpp>

#include "benchmarks/p2p/pair_matrix.h"
#include "src/app/command/app_context.h"

namespace trireme {

struct BenchPairsOptions {
  Backend backend = Backend::automatic;
  bool by_host = false;
  std::int64_t bytes = std::int64_t{1} << 20;  // size of a message, for bandwidth
  double duration = 0;                         // seconds of passes over all pairs; 0 for one pass
  int iterations = 10;  // number of windows; latency takes ten times as many messages
  int warmup = 2;
  int window = 16;
  std::optional<PairThreshold> threshold;
  std::string csv_file;
  std::string svg_file;
};

struct BenchPairsResult {
  nlohmann::ordered_json
      results;  // one entry {name: pairs, params, metrics, measurement, samples, matrices}
  bool below_threshold = false;
};

// Prints the matrix and the slow pairs on rank 0, which also writes the files. Collective.
BenchPairsResult bench_pairs(const BenchPairsOptions& options, MpiSession& session);

}  // namespace trireme
