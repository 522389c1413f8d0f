// ProgressLines decides when to log a run's progress and remaining time, and words the line, where
// a progress bar can't be drawn. It depends only on the times passed to it. Rank 0 owns one; the
// main thread uses it.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/progress_bar.h"

namespace trireme {

class ProgressLines {
 public:
  // `first_step` is the number of steps done before this start. `clock` is in seconds since any
  // fixed moment. `work` returns the work of all steps before a step; if empty, all steps are
  // alike.
  ProgressLines(std::int64_t first_step, std::int64_t last_step, double clock,
                ProgressBar::Work work = {});

  // Call after each step. Returns the line to log now, or "". There is one after the first step,
  // then one whenever nothing was logged for 30 s, and after ten minutes one every ten minutes.
  std::string after_step(std::int64_t step, double clock);
  // Call when another line said how long the rest takes. The first step then needs no line.
  void other_line(double clock) {
    last_line_ = clock;
    has_spoken_ = true;
  }

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
