// The JSON document that every benchmark writes with -J FILE:
//   {"schema": 1, "program": {...}, "host": {...}, "results": [{"name", "params", "metrics"}]}
// Rates are decimal, sizes in bytes, NaN and infinity null.
#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/base/median.h"

namespace trireme {

// ConfigError where a launcher started several ranks: they would only disturb each other.
void check_alone();

nlohmann::ordered_json bench_document(const nlohmann::ordered_json& results);
// Writes the document; nothing for an empty path.
void write_bench_document(const nlohmann::ordered_json& results, const std::filesystem::path& path);
// Prints the results for people (figures.h) and, if path is not empty, writes the document there.
void report(const nlohmann::ordered_json& results, const std::filesystem::path& path);

}  // namespace trireme
