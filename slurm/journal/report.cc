#include "slurm/journal/report.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

std::string seconds_or_dash(double seconds) {
  return seconds < 0 ? "-" : fmt::format("{:.1f}", seconds);
}

std::string causes_table(const Account& account) {
  std::string text = fmt::format("{:<12} {:>10} {:>7}\n", "cause", "seconds", "share");
  for (std::size_t i = 0; i < kTimeCauses; ++i) {
    const double share = account.wall > 0 ? 100 * account.seconds[i] / account.wall : 0;
    text += fmt::format("{:<12} {:>10.1f} {:>6.1f}%\n", name_of(static_cast<TimeCause>(i)),
                        account.seconds[i], share);
  }
  return text + fmt::format("{:<12} {:>10.1f} {:>6.1f}%\n", "wall time", account.wall, 100.0);
}

std::string attempts_table(const Account& account) {
  std::string text = fmt::format("{:>5} {:>5} {:>10} {:>8} {:>7} {:>8} {:>6} {:>8} {:>8} {:>6}\n",
                                 "no.", "ranks", "steps", "seconds", "exclude", "ranks up", "load",
                                 "1st step", "recovery", "detect");
  for (const AttemptAccount& a : account.attempts) {
    const std::string steps = a.to_step < 0 ? "-" : fmt::format("{}..{}", a.from_step, a.to_step);
    text += fmt::format(
        "{:>5} {:>5} {:>10} {:>8.1f} {:>7.1f} {:>8.1f} {:>6.1f} {:>8} {:>8} {:>6.1f}\n"
        "    end: {}{}{}\n",
        fmt::format("{}.{}", a.launch_number, a.number), a.ranks, steps, a.seconds, a.exclude,
        a.ranks_up, a.load, seconds_or_dash(a.first_step), seconds_or_dash(a.recovery), a.detect,
        a.cause.empty() ? "unknown" : printable(a.cause), a.what.empty() ? "" : ": ",
        printable(joined_lines(a.what)));
  }
  return text;
}

}  // namespace

std::string to_text(const Account& account) {
  std::string text = causes_table(account);
  text += fmt::format(
      "\neffective training time {:.1f} % of {}\n{}, {}, {}{}\n", 100 * account.effective_ratio(),
      format_seconds(account.wall), counted(account.launches, "launch"),
      counted(std::ssize(account.attempts), "attempt"), counted(account.failures, "failure"),
      account.failures == 0
          ? ""
          : fmt::format(", one every {}",
                        format_seconds(3600 * account.mean_hours_between_failures())));
  if (account.is_incomplete) {
    text +=
        "The journal is damaged or lacks events: attempts, failures and times may be\n"
        "missing from this account.\n";
  }
  text +=
      "\nThe attempts, as LAUNCH.ATTEMPT, with times in seconds. exclude: from the\n"
      "detection of the previous attempt's end to the start of this one; ranks up, 1st\n"
      "step: from that start; recovery: from the detection to the end of the first\n"
      "step; detect: to detect this attempt's end.\n";
  return text + attempts_table(account);
}

nlohmann::ordered_json to_json(const Account& account) {
  nlohmann::ordered_json seconds;
  for (std::size_t i = 0; i < kTimeCauses; ++i) {
    seconds[std::string(name_of(static_cast<TimeCause>(i)))] = account.seconds[i];
  }
  nlohmann::ordered_json attempts = nlohmann::ordered_json::array();
  const auto known = [](double value) {
    return value < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
  };
  for (const AttemptAccount& a : account.attempts) {
    attempts.push_back({{"launch", a.launch},
                        {"launch_number", a.launch_number},
                        {"attempt", a.number},
                        {"nodes", a.nodes},
                        {"ranks", a.ranks},
                        {"cause", a.cause},
                        {"what", a.what},
                        {"from_step", a.from_step},
                        {"to_step", a.to_step},
                        {"seconds", a.seconds},
                        {"exclude_seconds", a.exclude},
                        {"ranks_up_seconds", a.ranks_up},
                        {"load_seconds", a.load},
                        {"first_step_seconds", known(a.first_step)},
                        {"recovery_seconds", known(a.recovery)},
                        {"detect_seconds", a.detect}});
  }
  return {{"schema", "trireme-launch-report-2"},
          {"incomplete", account.is_incomplete},
          {"wall_seconds", account.wall},
          {"accounted_seconds", account.sum()},
          {"seconds", seconds},
          {"effective_ratio", account.effective_ratio()},
          {"launches", account.launches},
          {"failures", account.failures},
          {"mean_hours_between_failures", account.mean_hours_between_failures()},
          {"attempts", attempts}};
}

}  // namespace trireme
