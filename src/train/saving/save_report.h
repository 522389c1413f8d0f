// SaveReport logs a run's saves and its resume. Only rank 0 logs; on other ranks the calls do
// nothing. The log must outlive it.
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
  // Reports a save on disk that has ended. It stalled the training loop for `stall_seconds`, and
  // `waits` saves of this run have waited for the previous one.
  void disk(const SaveOutcome& outcome, double stall_seconds, std::int64_t waits) const;
  void memory(const SaveOutcome& outcome, double stall_seconds) const;
  // Reports that an interval of `auto` has changed to `steps`; `text` describes it.
  void interval(const char* key, const std::string& text, std::int64_t steps,
                const SaveFigures& figures) const;
  void resumed(const Resumed& resumed) const;

 private:
  Log* log_;                // null on ranks other than 0
  std::int64_t last_step_;  // training does not continue after this step
};

}  // namespace trireme
