// SaveReport: what a run logs about its saves and its resume. Only rank 0 logs; the calls on the
// others do nothing. The log outlives it.
#pragma once

#include <string>

#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/writer.h"
#include "src/base/log.h"
#include "src/train/saving/save_schedule.h"

namespace trireme {

class SaveReport {
 public:
  SaveReport(Log& log, int rank, std::int64_t last_step)
      : log_(rank == 0 ? &log : nullptr), last_step_(last_step) {}

  void warning(const std::string& text) const;
  // A save on disk has ended. The training loop stalled for so long, and `waits` saves of this run
  // have waited for the one before.
  void disk(const SaveOutcome& outcome, double stall_seconds, std::int64_t waits) const;
  void memory(const SaveOutcome& outcome, double stall_seconds) const;
  // An interval of `auto` has changed; `text` says to what.
  void interval(const char* key, const std::string& text, std::int64_t steps,
                const SaveFigures& figures) const;
  void resumed(const Resumed& resumed) const;

 private:
  Log* log_;                // null on other ranks than 0
  std::int64_t last_step_;  // after which training does not continue
};

}  // namespace trireme
