// Shows on standard error what a benchmark is doing. BenchProgress is for benchmarks that print
// their results at the end, TableProgress for those that print a table row by row. Owned by the
// benchmark; used by one thread. Only the rank with `speaks` shows or prints anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/progress_bar.h"
#include "src/base/stopwatch.h"

namespace trireme {

// BenchProgress draws a progress bar on a terminal. Elsewhere it prints a line per stage and one
// every ten seconds.
class BenchProgress {
 public:
  // parts: how many times done() will be called, over all stages; further calls change nothing.
  BenchProgress(std::string name, std::int64_t parts, bool speaks);

  // Begins a stage, such as "warming up" or "measuring".
  void stage(const std::string& what);
  // Reports that one part is done.
  void done();
  // Removes the progress bar. Call it before anything is printed.
  void finish();

 private:
  std::string name_;
  std::int64_t parts_;
  std::int64_t done_ = 0;
  std::string stage_;
  std::optional<ProgressBar> bar_;
};

// TableProgress prints a table, and draws a progress bar below it on a terminal. Elsewhere the rows
// are the only progress.
class TableProgress {
 public:
  // parts: how many times done() will be called. seconds: if above 0, the bar shows how much of
  // this time has passed instead, for a benchmark that does not know its parts.
  TableProgress(std::string name, std::int64_t parts, bool speaks, double seconds = 0);
  // Removes the progress bar.
  ~TableProgress();
  TableProgress(const TableProgress&) = delete;
  TableProgress& operator=(const TableProgress&) = delete;

  // Says what is being measured now, such as "all_reduce, 16 MiB".
  void measuring(const std::string& what);
  // Reports that one part is done.
  void done() { ++done_; }
  // Prints a part of the table on standard output, which is visible when this returns.
  void print(const std::string& text);

 private:
  std::int64_t passed() const;

  bool speaks_;
  std::int64_t total_;
  bool counts_seconds_;
  std::int64_t done_ = 0;
  Stopwatch watch_;
  std::optional<ProgressBar> bar_;
};

}  // namespace trireme
