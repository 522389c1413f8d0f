// BenchProgress shows on standard error what a benchmark is doing: with a progress bar on a
// terminal, and otherwise with a line per stage and one every ten seconds. Owned by the benchmark;
// used by one thread. Only the rank with `speaks` shows anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/progress_bar.h"

namespace trireme {

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

}  // namespace trireme
