#include "benchmarks/p2p/pair_matrix.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "benchmarks/report.h"
#include "benchmarks/statistics.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Returns the directions that `chosen` accepts, with their scores, slowest first.
std::vector<SlowPair> choose(const PairMatrix& matrix,
                             const std::function<bool(const SlowPair&)>& chosen) {
  const std::vector<double> scores = robust_scores(matrix.off_diagonal());
  std::vector<SlowPair> pairs;
  auto score = scores.begin();
  for (int from = 0; from < matrix.size; ++from) {
    for (int to = 0; to < matrix.size; ++to) {
      if (from == to) {
        continue;
      }
      const SlowPair pair{from, to, matrix.at(from, to), *score++};
      if (chosen(pair)) {
        pairs.push_back(pair);
      }
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const SlowPair& a, const SlowPair& b) { return a.value < b.value; });
  return pairs;
}

// Quotes a field according to RFC 4180.
std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

}  // namespace

std::vector<double> PairMatrix::off_diagonal() const {
  std::vector<double> all;
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from != to) {
        all.push_back(at(from, to));
      }
    }
  }
  return all;
}

std::vector<SlowPair> outliers(const PairMatrix& bandwidth) {
  return choose(bandwidth, [](const SlowPair& pair) { return pair.score < kOutlierScore; });
}

std::vector<SlowPair> below(const PairMatrix& bandwidth, double least) {
  return choose(bandwidth, [least](const SlowPair& pair) { return pair.value < least; });
}

std::optional<int> common_member(const std::vector<SlowPair>& pairs) {
  std::set<std::pair<int, int>> different;
  for (const SlowPair& pair : pairs) {
    different.emplace(std::min(pair.from, pair.to), std::max(pair.from, pair.to));
  }
  if (different.size() < 2) {
    return std::nullopt;
  }
  for (const int member : {different.begin()->first, different.begin()->second}) {
    if (std::all_of(different.begin(), different.end(), [member](const auto& pair) {
          return pair.first == member || pair.second == member;
        })) {
      return member;
    }
  }
  return std::nullopt;
}

RateUnit rate_unit(double median) {
  for (const RateUnit& unit : {RateUnit{"GB/s", 1e9}, RateUnit{"MB/s", 1e6}}) {
    if (median >= 0.1 * unit.bytes_per_s) {
      return unit;
    }
  }
  return {"kB/s", 1e3};
}

std::string matrix_cell(double value) {
  constexpr double kShownByTwoDecimals = 0.01;
  const double size = std::abs(value);
  return size > 0 && size < kShownByTwoDecimals ? fmt::format("{:.2g}", value)
                                                : fmt::format("{:.2f}", value);
}

PairThreshold parse_threshold(const std::string& text) {
  constexpr std::string_view kUnit = "GB/s";
  PairThreshold threshold;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, threshold.value);
  const std::string_view rest(stop, static_cast<std::size_t>(end - stop));
  threshold.absolute = rest == kUnit;
  const bool sensible = std::isfinite(threshold.value) && threshold.value > 0 &&
                        (threshold.absolute || (rest.empty() && threshold.value <= 1));
  if (error != std::errc{} || !sensible) {
    throw ConfigError(fmt::format(
        "--threshold {}: expected a fraction of the median, as in 0.8, or a rate, as in 2.5GB/s",
        text));
  }
  threshold.value *= threshold.absolute ? 1e9 : 1;
  return threshold;
}

std::string matrix_csv(const PairMatrix& matrix, const std::vector<int>& ranks,
                       const std::vector<std::string>& hosts) {
  std::string text = "from,host";
  for (const int rank : ranks) {
    text += fmt::format(",{}", rank);
  }
  text += "\n";
  for (int from = 0; from < matrix.size; ++from) {
    const auto row = static_cast<std::size_t>(from);
    text += fmt::format("{},{}", ranks[row], csv_text(hosts[row]));
    for (int to = 0; to < matrix.size; ++to) {
      text += from == to ? "," : fmt::format(",{:.6g}", matrix.at(from, to));
    }
    text += "\n";
  }
  return text;
}

}  // namespace trireme
