// `trireme bench all` asks all questions that the ranks of a job can answer, within a number of
// minutes, and gives one table and one JSON document.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "benchmarks/all/picture.h"
#include "src/app/command/app_context.h"

namespace trireme {

struct BenchAllOptions {
  double minutes = 10;
  std::filesystem::path folder = ".";  // on the file system to measure
  std::vector<std::string> only;       // names of questions; empty for all
  bool verbose = false;                // shows the tables of the single benchmarks, too
};

// Returns one answer per question. At the deadline and at an interrupting signal (interruption.h),
// calls `at_end` on every rank, on another thread, with the answers so far, the rows of the
// question that did not end and the questions that have no answer, and ends the process: with what
// `at_end` returns, or by the signal. Collective.
std::vector<Answer> bench_all(const BenchAllOptions& options, AppContext& context,
                              const std::function<int(const std::vector<Answer>&)>& at_end);

}  // namespace trireme
