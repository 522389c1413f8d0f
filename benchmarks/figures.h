// Formats the results of a benchmark for people, with units, labels and a verdict. Pure functions
// of the JSON that goes into -J FILE.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// Formats a metric with the unit that its name implies: ("bytes_per_s", 9.68e8) -> "968 MB/s",
// ("step_ms", 1234.5) -> "1.23 s", ("flops_per_s", 3.1e11) -> "310 GFLOP/s".
std::string figure_text(const std::string& name, double value);

// Formats name, parameters, metrics and verdict of one result, in lines of at most 80 columns.
std::string result_text(const nlohmann::ordered_json& result);

// Returns one line such as "step: 0.85 of the machine's bf16 rate: good", or "" for results without
// a verdict.
std::string verdict_of(const nlohmann::ordered_json& result);

// Returns the verdict of `bench coll`: a line for the largest size of each operation, such as "#
// all_reduce 16 MiB: 24.1 GB/s, 3.9 times MPI", which parsers of nccl-tests' table ignore.
std::string coll_verdict(const nlohmann::ordered_json& results);

// Returns the verdict of `bench p2p`, for the smallest and the largest message: "# p2p: 520 ns for
// 1 B, 9.1 GB/s for 4 MiB".
std::string p2p_verdict(const nlohmann::ordered_json& results);

}  // namespace trireme
