#include "benchmarks/calibrate/link_rates.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "benchmarks/coll/coll.h"
#include "benchmarks/p2p/p2p.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kSmallMessage = 8;

// Returns the metrics of an all-reduce.
nlohmann::ordered_json sum_of(const Connections& among, std::int64_t bytes, double seconds) {
  BenchCollOptions options;
  options.device = among.device;
  options.sum_order = among.sum_order;
  options.min_bytes = options.max_bytes = bytes;
  options.turns.seconds = seconds;
  const BenchCollResult result = bench_coll(options, among.session);
  demand_correct(result.wrong, "coll");
  return result.results.at(0).at("metrics");
}

}  // namespace

void demand_correct(std::int64_t wrong, const char* bench) {
  if (wrong > 0) {
    throw DeviceError(fmt::format("{} came out wrong: run trireme bench {} alone", wrong, bench));
  }
}

MessageRates message_rates(const Connections& among, int first, int second, double seconds) {
  MessageRates found;
  for (const bool latency : {true, false}) {
    BenchP2pOptions options;
    options.device = among.device;
    options.first = first;
    options.second = second;
    options.latency = latency;
    options.bandwidth = !latency;
    options.min_bytes = options.max_bytes = latency ? kSmallMessage : among.sizes.message_bytes;
    options.window = among.sizes.window;
    options.iterations = 20;  // between two looks at the clock
    options.warmup = 2;
    options.duration = seconds / 2;
    const BenchP2pResult result = bench_p2p(options, among.session);
    demand_correct(result.wrong, "p2p");
    const auto& metrics = result.results.at(0).at("metrics");
    if (latency) {
      found.latency_us = metrics.at("median_us").get<double>();
    } else {
      found.gb_per_s = metrics.at("median_GBps").get<double>();
    }
  }
  return found;
}

double sum_rate(const Connections& among, double seconds) {
  return sum_of(among, among.sizes.sum_bytes, seconds).at("busbw_GBps").get<double>();
}

double hop_latency(const Connections& among, double seconds) {
  const double us = sum_of(among, kSmallMessage, seconds).at("time_us").get<double>();
  return us / (2 * std::log2(among.session.world().size()));
}

}  // namespace trireme
