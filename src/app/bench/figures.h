// What people read of a benchmark's results: units, labels and a verdict. Pure functions of the
// JSON that goes into -J FILE.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// A metric with the unit that its name says: ("bytes_per_s", 9.68e8) -> "968 MB/s",
// ("step_ms", 1234.5) -> "1.23 s", ("flops_per_s", 3.1e11) -> "310 GFLOP/s".
std::string figure_text(const std::string& name, double value);

// Name, parameters, metrics and verdict of one result, in lines of at most 80 columns.
std::string result_text(const nlohmann::ordered_json& result);

// One line: "step: 0.85 of the machine's bf16 rate: good"; empty for a result that has none.
std::string verdict_of(const nlohmann::ordered_json& result);

// For `bench coll`: the largest size of every operation, a line each, which readers of nccl-tests'
// table pass over: "# all_reduce 16 MiB: 24.1 GB/s, 3.9 times MPI".
std::string coll_verdict(const nlohmann::ordered_json& results);

// For `bench p2p`, in the same form: "# p2p: 520 ns for 1 B, 9.1 GB/s for 4 MiB", of the smallest
// and the largest message.
std::string p2p_verdict(const nlohmann::ordered_json& results);

}  // namespace trireme
