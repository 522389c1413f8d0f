#include "src/optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "src/base/error.h"

namespace trireme {
namespace {

struct Name {
  ScheduleKind kind;
  std::string_view name;
};
constexpr std::array<Name, 5> kNames{{{ScheduleKind::constant, "constant"},
                                      {ScheduleKind::linear, "linear"},
                                      {ScheduleKind::cosine, "cosine"},
                                      {ScheduleKind::warmup_stable_decay, "wsd"},
                                      {ScheduleKind::inverse_sqrt, "inverse_sqrt"}}};

// Returns which part of the decay from lr to min_lr is complete at `step`, from 0 to 1.
double progress(const Schedule& s, std::int64_t step) {
  const std::int64_t length =
      s.kind == ScheduleKind::warmup_stable_decay ? s.decay : s.steps - s.warmup;
  const std::int64_t begin = s.steps - length;
  if (step >= s.steps) {
    return 1;
  }
  return step <= begin ? 0 : static_cast<double>(step - begin) / static_cast<double>(length);
}

}  // namespace

ScheduleKind parse_schedule(std::string_view name) {
  for (const Name& known : kNames) {
    if (known.name == name) {
      return known.kind;
    }
  }
  throw ConfigError(fmt::format(
      "optimizer.schedule.kind is '{}': it must be constant, linear, cosine, wsd or inverse_sqrt",
      name));
}

std::string_view schedule_name(ScheduleKind kind) {
  return std::find_if(kNames.begin(), kNames.end(), [&](const Name& n) { return n.kind == kind; })
      ->name;
}

void Schedule::validate() const {
  if (!(lr >= 0) || !std::isfinite(lr) || !(min_lr >= 0) || min_lr > lr) {
    throw ConfigError(
        fmt::format("optimizer: min_lr {} and lr {} must satisfy 0 <= min_lr <= lr", min_lr, lr));
  }
  if (warmup < 0 || steps < 0 || decay < 0) {
    throw ConfigError(
        fmt::format("optimizer.schedule: warmup {}, steps {} and decay {} must not be negative",
                    warmup, steps, decay));
  }
  const std::int64_t tail = kind == ScheduleKind::warmup_stable_decay ? decay : 0;
  if (kind != ScheduleKind::constant && warmup + tail > steps) {
    throw ConfigError(
        fmt::format("optimizer.schedule: warmup {} + decay {} = {} exceeds train.steps {}", warmup,
                    tail, warmup + tail, steps));
  }
}

double learning_rate(const Schedule& s, std::int64_t step) {
  if (step < s.warmup) {
    return s.lr * static_cast<double>(step + 1) / static_cast<double>(s.warmup);
  }
  switch (s.kind) {
    case ScheduleKind::constant:
      return s.lr;
    case ScheduleKind::linear:
    case ScheduleKind::warmup_stable_decay:
      return s.lr + (s.min_lr - s.lr) * progress(s, step);
    case ScheduleKind::cosine:
      return s.min_lr +
             (s.lr - s.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * progress(s, step)));
    case ScheduleKind::inverse_sqrt: {
      const auto peak = static_cast<double>(std::max<std::int64_t>(s.warmup, 1));
      return std::max(s.min_lr, s.lr * std::sqrt(peak / static_cast<double>(step + 1)));
    }
  }
  return s.lr;
}

}  // namespace trireme
