#include "benchmarks/coll/coll_entry.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "benchmarks/coll/nccl_table.h"
#include "benchmarks/memory_rate.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "benchmarks/table_time.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

Json microseconds(const TurnSamples& samples) {
  return samples_json(multiplied(samples.seconds, 1e6), multiplied(samples.by_rank, 1e6));
}

// Adds time_us, its confidence interval, algbw and busbw, with a prefix to their names.
void add_rates(Json& metrics, const std::string& prefix, const CollMeasurement& measurement,
               const TurnSamples& samples) {
  const MedianInterval time = median_interval(samples.seconds);
  metrics[prefix + "time_us"] = time.median * 1e6;
  metrics[prefix + "time_us_low"] = time.low * 1e6;
  metrics[prefix + "time_us_high"] = time.high * 1e6;
  metrics[prefix + "algbw_GBps"] = measurement.algbw(time.median);
  metrics[prefix + "busbw_GBps"] = measurement.busbw(time.median);
  metrics[prefix + "aggregated"] = samples.aggregated;
}

Json params_of(const CollMeasurement& measurement, const BenchCollOptions& options,
               const MpiSession& session) {
  std::set<std::string> hosts;
  for (const RankPlace& place : session.places()) {
    hosts.insert(place.node);
  }
  const Collective op = measurement.task.op;
  return {{"op", name_of(op)},
          {"bytes", measurement.size.bytes},
          {"count", measurement.size.count},
          {"dtype", nccl_name_of(options.dtype)},
          {"backend", backend_text(options)},
          {"ranks", measurement.ranks},
          {"hosts", hosts.size()},
          {"redop", reduces(op) ? Json(reduction_name(options.reduction)) : Json(nullptr)},
          {"root", has_root(op) ? Json(options.root) : Json(nullptr)},
          {"memory", options.ordinary_memory ? "ordinary" : "transport"},
          {"placement", measurement.native_placement() == 1 ? "in_place" : "out_of_place"},
          {"iterations", measurement.ours[0].seconds.size()},
          {"warmup", measurement.how.warmup}};
}

double native_seconds(const CollMeasurement& measurement,
                      const std::array<TurnSamples, 2>& samples) {
  return median(samples[measurement.native_placement()].seconds);
}

void add_memory(Json& metrics, const CollMeasurement& measurement) {
  const double moved = all_reduce_bytes_moved(measurement.size.bytes) /
                       native_seconds(measurement, measurement.ours);
  metrics["memory_bytes_per_s"] = moved;
  metrics["memory_ceiling_bytes_per_s"] = *measurement.memory_rate;
  metrics["fraction_of_memory_ceiling"] = moved / *measurement.memory_rate;
}

}  // namespace

double CollMeasurement::spare_seconds() const {
  double spare = 0;
  const auto add = [&](const std::array<TurnSamples, 2>& both) {
    for (const TurnSamples& each : both) {
      spare += trireme::spare_seconds(each.seconds, each.aggregated);
    }
  };
  add(ours);
  if (peer) {
    add(*peer);
  }
  return spare;
}

std::string backend_text(const BenchCollOptions& options) {
  return options.device.kind == DeviceKind::cuda ? "nccl" : std::string(name_of(options.backend));
}

nlohmann::ordered_json coll_entry(const CollMeasurement& measurement,
                                  const BenchCollOptions& options, const MpiSession& session) {
  const std::size_t native = measurement.native_placement();
  Json metrics;
  add_rates(metrics, "", measurement, measurement.ours[native]);
  Json samples = {{"out_of_place_us", microseconds(measurement.ours[0])},
                  {"in_place_us", microseconds(measurement.ours[1])}};
  if (measurement.peer) {
    add_rates(metrics, "peer_", measurement, (*measurement.peer)[native]);
    metrics["ratio"] = native_seconds(measurement, *measurement.peer) /
                       native_seconds(measurement, measurement.ours);
    samples["peer_out_of_place_us"] = microseconds((*measurement.peer)[0]);
    samples["peer_in_place_us"] = microseconds((*measurement.peer)[1]);
  }
  add_rates(metrics, native == 1 ? "out_of_place_" : "in_place_", measurement,
            measurement.ours[1 - native]);
  metrics["wrong"] =
      options.checks > 0 ? Json(measurement.wrong[0] + measurement.wrong[1]) : Json(nullptr);
  if (measurement.memory_rate) {
    add_memory(metrics, measurement);
  }
  return {{"name", "coll"},
          {"params", params_of(measurement, options, session)},
          {"metrics", metrics},
          {"measurement", to_json(measurement.how)},
          {"samples", samples}};
}

std::string peer_header(Collective op) {
  return fmt::format(
      "# Compared with {}, {}, alternating; medians of the slowest rank's times\n"
      "# {:>10}  {:>10}  {:>8}  {:>10}  {:>8}  {:>7}\n"
      "# {:>10}  {:>10}  {:>8}  {:>10}  {:>8}\n",
      mpi_name_of(op), op == Collective::all_to_all ? "out of place" : "in place", "size", "time",
      "busbw", "MPI time", "MPI bus", "ratio", "(B)", "(us)", "(GB/s)", "(us)", "(GB/s)");
}

std::string peer_line(const CollMeasurement& measurement) {
  if (!measurement.peer) {
    return "";
  }
  const double ours = native_seconds(measurement, measurement.ours);
  const double peers = native_seconds(measurement, *measurement.peer);
  return fmt::format("# {:>10}  {:>10}  {:>8}  {:>10}  {:>8}  {:>7.2f}\n", measurement.size.bytes,
                     nccl_number(ours * 1e6, 10), nccl_number(measurement.busbw(ours), 8),
                     nccl_number(peers * 1e6, 10), nccl_number(measurement.busbw(peers), 8),
                     peers / ours);
}

}  // namespace trireme
