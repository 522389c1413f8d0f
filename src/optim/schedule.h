// Learning-rate schedules: the rate as a pure function of the step. Nothing to save in a
// checkpoint.
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

// "constant", "linear", "cosine", "wsd" or "inverse_sqrt"; ConfigError for another word.
ScheduleKind parse_schedule(std::string_view name);
std::string_view schedule_name(ScheduleKind kind);

struct Schedule {
  ScheduleKind kind = ScheduleKind::cosine;
  double lr = 0;            // the peak
  double min_lr = 0;        // what the decay goes towards, and never below
  std::int64_t warmup = 0;  // steps of linear growth from lr / warmup to lr
  std::int64_t steps = 0;   // of the whole run; the decay would reach min_lr at step `steps`
  std::int64_t decay = 0;   // wsd only: steps of linear decay at the end
  // ConfigError that names the numbers.
  void validate() const;
};

// The rate of the update with number `step`, from 0. Beyond the end: min_lr (constant: lr;
// inverse_sqrt has no end).
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace trireme
