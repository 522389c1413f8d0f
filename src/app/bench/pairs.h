// `trireme bench pairs`: rounds of disjoint pairs over all ranks (or one a host), so that every
// pair is measured once, with as many others at work as can be. Each pair measures latency and the
// bandwidth of either direction; slow pairs and whom they have in common are named.
#pragma once

#include <nlohmann/json.hpp>

#include "src/app/app_context.h"
#include "src/app/bench/pair_matrix.h"

namespace trireme {

struct BenchPairsOptions {
  Backend backend = Backend::automatic;
  bool by_host = false;
  std::int64_t bytes = std::int64_t{1} << 20;  // of a message, for bandwidth
  int iterations = 10;                         // of windows, and ten times as many of latency
  int warmup = 2;
  int window = 16;
  std::optional<PairThreshold> threshold;
  std::string csv_file;
  std::string svg_file;
};

struct BenchPairsResult {
  nlohmann::ordered_json results;  // one entry {name: pairs, params, metrics, matrices}
  bool below_threshold = false;
};

// Prints the matrix and what is slow on rank 0, which writes the files. Collective.
BenchPairsResult bench_pairs(const BenchPairsOptions& options, MpiSession& session);

}  // namespace trireme
