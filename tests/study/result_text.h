// Makes documents as `trireme bench -J` writes them, for tests.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace trireme {

inline nlohmann::json bench_json(const std::vector<double>& times,
                                 const std::string& samples = "time_us") {
  using nlohmann::json;
  const json result = {{"name", "gemm"},
                       {"params", {{"precision", "fp32"}, {"m", 96}, {"rounds", times.size()}}},
                       {"metrics", json::object()},
                       {"measurement", json::object()},
                       {"samples", {{samples, {{"values", times}}}}}};
  return {{"schema", 2},
          {"command", "gemm"},
          {"program",
           {{"version", "0.1.0"},
            {"commit", "abc"},
            {"mpi", nullptr},
            {"built_with", {{"compiler", "gcc"}}}}},
          {"host",
           {{"name", "n1"},
            {"processor", "CPU"},
            {"cores", 2},
            {"kernel", "6.1"},
            {"memory_bytes", std::int64_t{1} << 34}}},
          {"ranks", json::array()},
          {"environment", json::object()},
          {"clock", {{"name", "CLOCK_MONOTONIC"}, {"source", "tsc"}}},
          {"time", 1.8e9},
          {"waited_fraction", 0},
          {"results", {result}}};
}

}  // namespace trireme
