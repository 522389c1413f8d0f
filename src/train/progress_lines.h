// ProgressLines: how far a run is and how long the rest will take, for logs: where a progress bar
// can't be drawn. A pure function of the times that it is given. Rank 0 owns one; the main thread
// uses it.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/progress_bar.h"

namespace trireme {

class ProgressLines {
 public:
  // first_step: done before this start. Clocks are in seconds since any moment. work: of the steps
  // before a step; empty where all are alike.
  ProgressLines(std::int64_t first_step, std::int64_t last_step, double clock,
                ProgressBar::Work work = {});

  // A step is done. The line to log now, or nothing: one after the first step, then one whenever
  // nothing was logged for 30 s, after ten minutes one every ten minutes.
  std::string after_step(std::int64_t step, double clock);
  // Something else was logged about the step.
  void other_line(double clock) { last_line_ = clock; }

 private:
  bool due(double clock) const;
  std::int64_t work(std::int64_t step) const { return work_ ? work_(step) : step; }

  std::int64_t first_;
  std::int64_t last_;
  double begun_;
  double last_line_;
  double last_own_;
  ProgressBar::Work work_;
  bool has_spoken_ = false;
};

}  // namespace trireme
