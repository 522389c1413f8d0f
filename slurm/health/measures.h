// Measures describe a node: its speed as rates, of which more is better, and its hardware as facts
// in words. compare() finds where a node falls short of an earlier measurement. Plain values and
// pure functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct Rate {
  double median = 0;
  double deviation = 0;  // median of |sample - median|
  std::string unit;      // "GFLOP/s", "MB/s"
};

// Computes median and deviation. samples: at least one.
Rate rate_of(const std::vector<double>& samples, std::string unit);

struct Measures {
  std::string node;
  std::int64_t time = 0;  // seconds since the epoch; 0 if an older program has written it
  std::string folder;     // the folder whose disk was measured; empty if unknown
  std::map<std::string, Rate> rates;         // "products bf16", "memory", "disk write"
  std::map<std::string, std::string> facts;  // "cores": "64", "link mlx5_0/1": "active 200 Gb/sec"
  // These counters only grow until the node is restarted: "link eth0 rx_errors".
  std::map<std::string, std::int64_t> counters;
};

// A baseline is a sealed file. parse_baseline() throws DataError if a byte has changed, the version
// is another one, or the content is no baseline.
std::string baseline_text(const Measures& measures);
Measures parse_baseline(std::string_view text);
// Reads and parses the file. A DataError names it and says how to make a new one.
Measures load_baseline(const std::filesystem::path& file);

// Returns complaints, one line each. A rate is reported if it is both below `fraction` of the
// baseline and lower than the scatter explains (three robust standard deviations, 3 x 1.4826 MAD),
// or if it is below a quarter of the baseline. Facts that have changed, measures that are missing,
// and counters that have grown by more than kErrorsADay per day since the baseline are reported,
// too. Measures that the baseline lacks are ignored.
inline constexpr std::int64_t kErrorsADay = 10;  // the limit that ibqueryerrors(8) uses
std::vector<std::string> compare(const Measures& now, const Measures& baseline, double fraction);

}  // namespace trireme
