#include "benchmarks/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "benchmarks/statistics.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLeastInDuration = 3;
constexpr std::int64_t kMostInDuration = 1'000'000;

// Digits beyond the ninth say more than any clock can.
Json rounded(double value) {
  return std::isfinite(value) ? Json(std::strtod(fmt::format("{:.9g}", value).c_str(), nullptr))
                              : Json(nullptr);
}

Json rounded(const std::vector<double>& values) {
  Json all = Json::array();
  for (const double value : values) {
    all.push_back(rounded(value));
  }
  return all;
}

template <class Combine>
std::vector<double> combined(const std::vector<std::vector<double>>& by_rank, Combine combine) {
  std::vector<double> values = by_rank.front();
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank) {
    std::transform(values.begin(), values.end(), by_rank[rank].begin(), values.begin(), combine);
  }
  return values;
}

}  // namespace

StopRule StopRule::count_or_duration(std::int64_t count, double duration) {
  return duration > 0 ? StopRule{kLeastInDuration, kMostInDuration, duration, 0}
                      : StopRule{count, count, 0, 0};
}

std::string StopRule::rounds() const {
  return seconds > 0 ? fmt::format("rounds for {:g} s", seconds) : counted(most, "round");
}

bool Sampling::out_of_time() const {
  double elapsed = watch_.seconds();
  if (comm_ != nullptr) {
    elapsed = all_reduce_value(*comm_, elapsed, ReduceOp::max);
  }
  return elapsed >= rule_.seconds;
}

bool Sampling::more(std::size_t samples) {
  const auto count = static_cast<std::int64_t>(samples);
  if (count < rule_.least || count >= rule_.most) {
    return count < rule_.least;
  }
  return rule_.seconds <= 0 || !out_of_time();
}

bool Sampling::more(const std::vector<double>& samples) {
  if (rule_.precision > 0 && static_cast<std::int64_t>(samples.size()) >= rule_.least) {
    const MedianInterval interval = median_interval(samples);
    if ((interval.high - interval.low) / 2 <= rule_.precision * std::abs(interval.median)) {
      return false;
    }
  }
  return more(samples.size());
}

Json to_json(const HowMeasured& how) {
  const StopRule& stop = how.stop;
  const auto limit = [](double value) { return value > 0 ? Json(value) : Json(nullptr); };
  return {{"warmup", how.warmup},
          {"stop",
           {{"rule", stop.precision > 0 ? "precision"
                     : stop.seconds > 0 ? "duration"
                                        : "count"},
            {"least", stop.least},
            {"most", stop.most},
            {"seconds", limit(stop.seconds)},
            {"precision", limit(stop.precision)}}},
          {"sample", how.sample},
          {"synchronized_by", how.synchronized_by}};
}

std::vector<std::vector<double>> gather_by_rank(Communicator& comm,
                                                const std::vector<double>& values) {
  const std::size_t count = values.size();
  const auto ranks = static_cast<std::size_t>(comm.size());
  std::vector<double> all(ranks * count);
  std::copy(
      values.begin(), values.end(),
      all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(comm.rank()) * count));
  comm.all_gather({all.data(), static_cast<std::int64_t>(all.size()), DType::f64}).wait();
  std::vector<std::vector<double>> by_rank;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * count);
    by_rank.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
  }
  return by_rank;
}

std::vector<double> slowest(const std::vector<std::vector<double>>& by_rank) {
  return combined(by_rank, [](double a, double b) { return std::max(a, b); });
}

std::vector<double> sums(const std::vector<std::vector<double>>& by_rank) {
  return combined(by_rank, [](double a, double b) { return a + b; });
}

Json samples_json(const std::vector<double>& values,
                  const std::vector<std::vector<double>>& by_rank) {
  const MedianInterval interval = median_interval(values);
  Json ranks = nullptr;
  for (const auto& each : by_rank) {
    ranks.push_back(rounded(each));
  }
  return {{"values", rounded(values)},
          {"median", rounded(interval.median)},
          {"low", rounded(interval.low)},
          {"high", rounded(interval.high)},
          {"by_rank", ranks}};
}

Json samples_json(const std::vector<double>& values) { return samples_json(values, {values}); }

std::vector<double> multiplied(std::vector<double> values, double factor) {
  std::for_each(values.begin(), values.end(), [factor](double& value) { value *= factor; });
  return values;
}

std::vector<std::vector<double>> multiplied(std::vector<std::vector<double>> values,
                                            double factor) {
  for (auto& each : values) {
    each = multiplied(std::move(each), factor);
  }
  return values;
}

}  // namespace trireme
