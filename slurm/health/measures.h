// Measures: what a node reaches, as numbers (rates, of which more is better), and what it is made
// of, as words; and where it falls short of an earlier measure. Plain values and pure functions.
#pragma once

#include <cstdint>
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

// median and deviation of samples; at least one.
Rate rate_of(const std::vector<double>& samples, std::string unit);

struct Measures {
  std::string node;
  std::int64_t time = 0;              // seconds since the epoch; 0: an older program has written it
  std::string folder;                 // on the disk that was measured; empty: not known
  std::map<std::string, Rate> rates;  // "products bf16", "memory", "disk write"
  std::map<std::string, std::string> facts;  // "cores": "64", "link mlx5_0/1": "active 200 Gb/sec"
  // What only grows between two starts of the node: "link eth0 rx_errors".
  std::map<std::string, std::int64_t> counters;
};

// A file that is sealed: DataError for a changed byte, another version, or what is no measure.
std::string baseline_text(const Measures& measures);
Measures parse_baseline(std::string_view text);

// Complaints, one a line for people: rates below both `fraction` of the baseline's and what its
// scatter allows (three robust standard deviations, 3 x 1.4826 MAD), or below a quarter of it,
// facts that are not as they were, measures that are missing, counters that grew by more than
// kErrorsADay for each day since the baseline. What the baseline does not know is passed over.
inline constexpr std::int64_t kErrorsADay = 10;  // what ibqueryerrors(8) allows, too
std::vector<std::string> compare(const Measures& now, const Measures& baseline, double fraction);

}  // namespace trireme
