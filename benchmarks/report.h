// Writes the document of a benchmark, for -J FILE. benchmarks/schema/ describes its format:
//   {"schema": 2, "command", "program", "host", "ranks", "environment", "clock", "time",
//    "waited_fraction", "left_out", "failed": [{"question", "reason"}], "results": [{"name",
//    "params", "metrics", "measurement", "samples"}]}; "left_out" and "failed" are absent if
//    nothing was left out, or has failed.
// Rates are decimal, sizes are in bytes, and NaN and infinity become null.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mpi/topology.h"
#include "src/base/median.h"

namespace trireme {

// Throws ConfigError if a launcher has started several ranks, as they would disturb each other.
void check_alone();
// Throws ConfigError if a launcher has started several ranks on this node. One on each is allowed.
void check_one_per_node();
// Throws ConfigError in a program on the simulated CUDA device, which has no speed to measure.
void check_can_measure();

// FailedQuestion is a question of `bench all` that has no answer.
struct FailedQuestion {
  std::string question;  // "io"
  std::string reason;
};

// BenchContext is what a document says besides the results.
struct BenchContext {
  std::string command;            // of `trireme bench`
  std::vector<RankPlace> places;  // of all ranks; empty for one process without MPI
  std::string mpi;                // version of the MPI library that connects them; "" without MPI
  // The fraction of its time that the rank which waited longest waited for a core; NaN: unknown.
  double waited_fraction = 0;
  double time = 0;                         // seconds since the epoch
  std::vector<std::string> left_out = {};  // results for which there was no time
  std::vector<FailedQuestion> failed = {};
};

nlohmann::ordered_json bench_document(const nlohmann::ordered_json& results,
                                      const BenchContext& context);
// Formats the document with one line for each list of numbers.
std::string document_text(const nlohmann::ordered_json& document);

}  // namespace trireme
