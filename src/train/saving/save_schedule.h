// When a level of checkpoints is due: every so many steps; or, with `auto`, after the interval at
// which saving costs as much as the work that failures undo:
//
//   t = sqrt(2 d M)                                                   (Young, CACM 17(9), 1974)
//   t = sqrt(2 d M) [1 + 1/3 sqrt(d / 2M) + 1/9 (d / 2M)] - d,  d < 2M;  else M
//                                  (Daly, Future Generation Computer Systems 22(3), 2006, eq. 37)
//
// with d, what a save costs, and M, the time between failures. Daly's form is used: it corrects
// Young's where saves are not cheap. Plain values: the figures that go in are the same on all
// ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/config_binder.h"

namespace trireme {

// Seconds of work between two saves.
double best_interval(double save_seconds, double mtbf_seconds);

// What a level has measured, the most of all ranks, in seconds.
struct SaveFigures {
  double cost = 0;   // of a save, to the run
  double least = 0;  // an interval takes no less: the save is under way that long
  double step = 0;   // a training step
  double mtbf = 0;
};

class SaveSchedule {
 public:
  // Of `auto`, the first save comes after so many steps, to be measured.
  static constexpr std::int64_t kProbeSteps = 8;

  explicit SaveSchedule(const IntegerOrWord& every) : every_(every) {}
  bool is_auto() const { return every_.is("auto"); }
  // The run starts, or goes on, after this step.
  void start(std::int64_t step);
  bool due(std::int64_t step) const;
  void saved(std::int64_t step);
  // Sets the interval of `auto`. What to tell people, if it has changed by a tenth or more.
  std::optional<std::string> learn(const SaveFigures& figures);
  std::int64_t interval() const { return interval_; }  // of `auto`, in steps

 private:
  IntegerOrWord every_;
  std::int64_t interval_ = kProbeSteps;
  std::int64_t latest_ = 0;  // the step after which the interval is counted
  std::int64_t told_ = 0;
};

}  // namespace trireme
