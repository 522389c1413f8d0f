#include "benchmarks/noise/quanta.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <sys/resource.h>

#include "src/base/clock.h"

namespace trireme {
namespace {

constexpr std::int64_t kUnitSteps = 64;  // some tens of nanoseconds

// Computes a chain of dependent operations in registers.
void do_work(std::int64_t units) {
  std::uint64_t value = 1;
  for (std::int64_t i = 0; i < units * kUnitSteps; ++i) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    asm volatile("" : "+r"(value));  // keeps the compiler from leaving the work out
  }
}

}  // namespace

std::int64_t units_in(double seconds) {
  // The fastest of several tries is the one that nothing disturbed.
  constexpr int kTries = 20;
  constexpr std::int64_t kUnits = 20'000;
  double least = 0;
  for (int i = 0; i < kTries; ++i) {
    const double begin = steady_seconds();
    do_work(kUnits);
    const double took = steady_seconds() - begin;
    least = i == 0 ? took : std::min(least, took);
  }
  return std::max<std::int64_t>(std::llround(seconds / least * static_cast<double>(kUnits)), 1);
}

WorkQuanta fixed_work(std::int64_t units, double duration, std::size_t most) {
  WorkQuanta quanta;
  quanta.seconds.resize(most);  // touched now, not while measuring
  quanta.begins.resize(most);
  std::size_t count = 0;
  do_work(units);
  const double first = steady_seconds();
  double now = first;
  while (count < most && (count == 0 || now - first < duration)) {
    const double begin = now;
    do_work(units);
    now = steady_seconds();
    quanta.begins[count] = begin - first;
    quanta.seconds[count] = now - begin;
    ++count;
  }
  quanta.seconds.resize(count);
  quanta.begins.resize(count);
  return quanta;
}

std::vector<double> fixed_time(double quantum, double duration, std::size_t most) {
  const auto wanted = static_cast<std::size_t>(std::max(std::floor(duration / quantum), 1.0));
  std::vector<double> work(std::min(wanted, most));
  do_work(1);
  const double first = steady_seconds();
  for (std::size_t interval = 0; interval < work.size();) {
    do_work(1);
    // A unit counts for the interval in which it ends.
    const double at = (steady_seconds() - first) / quantum;
    interval = std::max(interval, static_cast<std::size_t>(at));
    if (interval < work.size()) {
      work[interval] += 1;
    }
  }
  return work;
}

double quantile(std::vector<double> values, double q) {
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
  const std::size_t index = std::min(rank > 0 ? rank - 1 : 0, values.size() - 1);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index),
                   values.end());
  return values[index];
}

WorkStatistics evaluate(const WorkQuanta& quanta) {
  const std::vector<double>& seconds = quanta.seconds;
  WorkStatistics statistics;
  statistics.least = *std::min_element(seconds.begin(), seconds.end());
  statistics.most = *std::max_element(seconds.begin(), seconds.end());
  statistics.median = quantile(seconds, 0.5);
  statistics.p99 = quantile(seconds, 0.99);
  statistics.p999 = quantile(seconds, 0.999);
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  const double undisturbed = statistics.least * static_cast<double>(seconds.size());
  statistics.lost_fraction = total > 0 ? std::max(1 - undisturbed / total, 0.0) : 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double detour = seconds[i] - statistics.least;
    if (detour > kDetourPart * statistics.least) {
      ++statistics.detours;
      statistics.worst.push_back({quanta.begins[i], detour});
    }
  }
  std::sort(statistics.worst.begin(), statistics.worst.end(),
            [](const Detour& a, const Detour& b) { return a.seconds > b.seconds; });
  statistics.worst.resize(std::min(statistics.worst.size(), kWorstDetours));
  return statistics;
}

TimeStatistics evaluate(const std::vector<double>& work) {
  TimeStatistics statistics;
  statistics.most = *std::max_element(work.begin(), work.end());
  statistics.least = *std::min_element(work.begin(), work.end());
  statistics.median = quantile(work, 0.5);
  statistics.empty = std::count(work.begin(), work.end(), 0.0);
  const double mean =
      std::accumulate(work.begin(), work.end(), 0.0) / static_cast<double>(work.size());
  statistics.lost_fraction = statistics.most > 0 ? 1 - mean / statistics.most : 0;
  return statistics;
}

std::optional<std::int64_t> interrupts_of(int cpu, const std::filesystem::path& root) {
  std::ifstream file(root / "proc/interrupts");
  std::string line;
  if (!std::getline(file, line)) {
    return std::nullopt;
  }
  std::istringstream head(line);
  std::size_t columns = 0;
  std::optional<std::size_t> column;
  for (std::string word; head >> word; ++columns) {
    if (word == fmt::format("CPU{}", cpu)) {
      column = columns;
    }
  }
  if (!column) {
    return std::nullopt;
  }
  std::int64_t total = 0;
  while (std::getline(file, line)) {
    std::istringstream row(line);
    std::string label;
    row >> label;
    std::int64_t count = 0;
    for (std::size_t i = 0; i <= *column && row >> count; ++i) {
      total += i == *column ? count : 0;
    }
  }
  return total;
}

std::int64_t involuntary_switches() {
  struct rusage usage {};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace trireme
