#include "benchmarks/busy_watch.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "src/base/say.h"

namespace trireme {
namespace {

// Times of threads that have ended, which the kernel no longer reports.
std::atomic<double> ended_ran = 0;
std::atomic<double> ended_waited = 0;

}  // namespace

void count_ending_thread() {
  std::ifstream file("/proc/thread-self/schedstat");
  double ran = 0;
  double waited = 0;
  if (file >> ran >> waited) {
    ended_ran += 1e-9 * ran;
    ended_waited += 1e-9 * waited;
  }
}

BusyWatch::BusyWatch() : begin_(now()) {}

BusyWatch::Times BusyWatch::now() {
  Times times{ended_ran, ended_waited};
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::ifstream file(task.path() / "schedstat");
    double ran = 0;
    double waited = 0;
    if (file >> ran >> waited) {
      times.ran += 1e-9 * ran;
      times.waited += 1e-9 * waited;
    }
  }
  return times;
}

double BusyWatch::waiting_part() const {
  const Times end = now();
  const double ran = end.ran - begin_.ran;
  const double waited = end.waited - begin_.waited;
  return waited > 0 && ran >= 0 ? waited / (ran + waited) : 0;
}

std::string busy_warning(double waiting_part) {
  if (waiting_part < kBusyPart) {
    return "";
  }
  return fmt::format(
      "warning: the machine was busy: this benchmark waited for a core {:.0f}% of its time.\n"
      "Other programs run here, or there are more threads than cores: the rates are too\n"
      "low and the ratios mean little. Measure again when the machine is quiet.",
      100 * waiting_part);
}

void warn_if_busy(double waiting_part) {
  if (const std::string warning = busy_warning(waiting_part); !warning.empty()) {
    std::fflush(stdout);  // print the results before the warning about them
    say(warning);
  }
}

}  // namespace trireme
