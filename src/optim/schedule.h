// Computes learning rates from schedules. The rate is a pure function of the step, so checkpoints
// need not save it.
#pragma once

#include <cstdint>
#include <string_view>

namespace trireme {

enum class ScheduleKind : std::uint8_t {
  constant,
  linear,
  cosine,
  warmup_stable_decay,
  inverse_sqrt,  // lr * sqrt(warmup / (step + 1)) after warmup (Vaswani et al., 2017)
};

// Parses "constant", "linear", "cosine", "wsd" or "inverse_sqrt". Throws ConfigError for any other
// word.
ScheduleKind parse_schedule(std::string_view name);
std::string_view schedule_name(ScheduleKind kind);

struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double lr = 0;            // the highest rate
  double min_lr = 0;        // lower bound of the decay
  std::int64_t warmup = 0;  // steps of linear growth from lr / warmup to lr
  std::int64_t steps = 0;   // length of the run; the decay would reach min_lr at step `steps`
  std::int64_t decay = 0;   // wsd only: number of steps of linear decay at the end
  // Throws ConfigError that names the numbers.
  void validate() const;
};

// Returns the rate of update number `step`, from 0. After the last step it is min_lr, or lr if
// constant; inverse_sqrt continues.
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace trireme
