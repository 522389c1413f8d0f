// Writes the JSON document of a benchmark, for -J FILE:
//   {"schema": 1, "program": {...}, "host": {...}, "results": [{"name", "params", "metrics"}]}
// Rates are decimal, sizes are in bytes, and NaN and infinity become null.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/base/median.h"

namespace trireme {

// Throws ConfigError if a launcher has started several ranks, as they would disturb each other.
void check_alone();
// Throws ConfigError in a program on the simulated CUDA device, which has no speed to measure.
void check_can_measure();

nlohmann::ordered_json bench_document(const nlohmann::ordered_json& results);
// Writes the document. An empty path means none.
void write_bench_document(const nlohmann::ordered_json& results, const std::filesystem::path& path);
// Prints the results for people (figures.h) and writes the document unless the path is empty.
void report(const nlohmann::ordered_json& results, const std::filesystem::path& path);

}  // namespace trireme
