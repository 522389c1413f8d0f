// Measures one core with fixed quanta of work and of time, and evaluates the samples. Each
// measurement runs on the calling thread, which is pinned, and touches no memory but its samples.
//
// With fixed work, a sample is the time that the same work takes (FWQ of LLNL's Sequoia
// benchmarks). With fixed time, a sample is the work that is done in one of equal intervals (FTQ;
// Sottile and Minnich, 2004).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace trireme {

// Returns how many units of work take `seconds` on this core, at least 1.
std::int64_t units_in(double seconds);

struct WorkQuanta {
  std::vector<double> seconds;  // of each quantum
  std::vector<double> begins;   // of each quantum, from the first one
};
// Repeats `units` of work until `duration` seconds are over, at most `most` times, at least once.
WorkQuanta fixed_work(std::int64_t units, double duration, std::size_t most);

// Returns the units of work that were done in each interval of `quantum` seconds. An interval in
// which the core was away has 0.
std::vector<double> fixed_time(double quantum, double duration, std::size_t most);

// A detour is what a quantum took beyond the shortest one of its core.
struct Detour {
  double at = 0;       // seconds from the first quantum to the start of this one
  double seconds = 0;  // of the detour
};
struct WorkStatistics {
  double least = 0;  // seconds
  double median = 0;
  double p99 = 0;
  double p999 = 0;
  double most = 0;
  double lost_fraction = 0;   // all detours / all time
  std::int64_t detours = 0;   // of more than kDetourPart of the shortest quantum
  std::vector<Detour> worst;  // the longest first, at most kWorstDetours
};
inline constexpr double kDetourPart = 0.05;
inline constexpr std::size_t kWorstDetours = 5;

// quanta: at least one. Pure, like the next one.
WorkStatistics evaluate(const WorkQuanta& quanta);

struct TimeStatistics {
  double most = 0;  // units of work in the best interval
  double median = 0;
  double least = 0;
  double lost_fraction = 0;  // 1 - mean / most; 0 if no interval had any work
  std::int64_t empty = 0;    // intervals without work
};
TimeStatistics evaluate(const std::vector<double>& work);

// Returns the value at the fraction q of the sorted values. Pure. values: at least one.
double quantile(std::vector<double> values, double q);

// Returns how many interrupts a processor has had, or nothing if the system does not tell. root:
// the folder that contains proc.
std::optional<std::int64_t> interrupts_of(int cpu, const std::filesystem::path& root = "/");
// Returns how often the calling thread had to leave its core for another one.
std::int64_t involuntary_switches();

}  // namespace trireme
