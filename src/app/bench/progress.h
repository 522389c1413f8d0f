// BenchProgress: what a benchmark does now, on standard error: a progress bar on a terminal,
// elsewhere a line per stage and one every ten seconds. Owned by the benchmark; one thread. Only
// the rank that speaks shows anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/progress_bar.h"

namespace trireme {

class BenchProgress {
 public:
  // parts: of all stages together, as many as done() will be called.
  BenchProgress(std::string name, std::int64_t parts, bool speaks);

  // "warming up", "measuring": before the first part of a stage.
  void stage(const std::string& what);
  // A part is done.
  void done();
  // Before anything is printed.
  void finish();

 private:
  std::string name_;
  std::int64_t done_ = 0;
  std::string stage_;
  std::optional<ProgressBar> bar_;
};

}  // namespace trireme
