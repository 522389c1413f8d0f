// `trireme bench noise` measures how much time the operating system and other programs take from
// each core, and in what pieces, with fixed quanta of work and of time (quanta.h) on one pinned
// thread per core, on all cores at once.
#pragma once

#include <nlohmann/json.hpp>

#include "benchmarks/measured_rows.h"

namespace trireme {

struct BenchNoiseOptions {
  double quantum_us = 1000;
  bool fixed_work = true;
  bool fixed_time = true;
  double duration = 10;          // seconds of both methods together
  MeasuredRows* rows = nullptr;  // also gets each row once it is measured, unless null
};

// Returns the results, which the caller prints: one noise_core for each core and method, and one
// noise for each method. One process measures its whole node.
nlohmann::ordered_json bench_noise(const BenchNoiseOptions& options);

// Formats a table of the cores, the worst ones first, and a verdict for each method. Pure.
std::string noise_text(const nlohmann::ordered_json& results);

}  // namespace trireme
