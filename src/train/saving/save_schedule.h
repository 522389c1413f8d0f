// SaveSchedule says after which steps a checkpoint is due, on disk or in memory: after a fixed
// number of steps, or, with `auto`, after the interval at which saving costs as much as the work
// that failures undo (best_interval() in src/base/save_interval.h). A plain value; all ranks pass
// the same figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/config_binder.h"

namespace trireme {

// Measurements in seconds; each is the maximum over all ranks.
struct SaveFigures {
  double cost = 0;   // time that a save costs the run
  double least = 0;  // shortest possible interval: the time until a save is durable
  double step = 0;   // time of a training step
  double mtbf = 0;   // mean time between failures
};

class SaveSchedule {
 public:
  // With `auto`, the first save comes after this many steps, so that it is measured early.
  static constexpr std::int64_t kProbeSteps = 8;

  explicit SaveSchedule(const IntegerOrWord& every) : every_(every) {}
  bool is_auto() const { return every_.is("auto"); }
  // Call when the run starts or resumes after this step.
  void start(std::int64_t step);
  bool due(std::int64_t step) const;
  void saved(std::int64_t step);
  // Sets the interval of `auto`. Returns a text for the log if it differs by a tenth or more from
  // the last one reported.
  std::optional<std::string> learn(const SaveFigures& figures);
  std::int64_t interval() const { return interval_; }  // of `auto`, in steps

 private:
  IntegerOrWord every_;
  std::int64_t interval_ = kProbeSteps;
  std::int64_t latest_ = 0;    // the step from which the interval counts
  std::int64_t reported_ = 0;  // the interval reported last
};

}  // namespace trireme
