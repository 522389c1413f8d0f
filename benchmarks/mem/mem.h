// `trireme bench mem` measures the memory of a node: the bandwidth of STREAM's four kernels on all
// cores and on those of each NUMA node, and the latency from each NUMA node to the memory of each.
#pragma once

#include <cstdint>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "benchmarks/measured_rows.h"

namespace trireme {

struct BenchMemOptions {
  // The size of each array, and of the memory whose latency is measured. 0 stands for four times
  // the last-level caches, or less if the free memory is smaller.
  std::int64_t bytes = 0;
  bool bandwidth = true;
  bool latency = true;
  double duration = 0;  // seconds of all measurements; 0 until each median is known to 5 %
  // The folder that contains sys, where the NUMA nodes of the processors are looked up.
  std::filesystem::path root = "/";
  MeasuredRows* rows = nullptr;  // also gets each row once it is measured, unless null
};

struct BenchMemResult {
  nlohmann::ordered_json results;  // mem_stream and mem_latency: {name, params, metrics, ...}
  std::string text;                // tables, those of bandwidths in the form of STREAM
  std::int64_t wrong = 0;          // elements that did not hold the expected value
};

// One process measures its whole node.
BenchMemResult bench_mem(const BenchMemOptions& options);

// Chooses the size of an array: options.bytes, or four times the cache within the free memory.
// cache: bytes, 0 if unknown. free: bytes for `arrays` arrays together. Throws ConfigError if
// options.bytes do not fit. Pure.
std::int64_t choose_array_bytes(std::int64_t wanted, std::int64_t cache, std::int64_t free,
                                int arrays);

}  // namespace trireme
