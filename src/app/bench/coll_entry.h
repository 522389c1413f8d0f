// What `trireme bench coll` says of one operation at one size: as an entry of the JSON document,
// and as a line beside MPI's own.
#pragma once

#include <array>
#include <optional>

#include "src/app/bench/coll.h"
#include "src/app/bench/contestant.h"
#include "src/app/bench/report.h"

namespace trireme {

struct CollMeasurement {
  CollectiveTask task;
  CollectiveSize size;
  int ranks = 1;
  std::array<TurnSamples, 2> ours;  // out of place, in place
  std::optional<std::array<TurnSamples, 2>> peer;
  std::array<std::int64_t, 2> wrong = {0, 0};  // elements, all ranks
  std::optional<double> memory_rate;           // bytes a second of a rank, all at once

  // Decimal gigabytes a second.
  double algbw(double seconds) const { return static_cast<double>(size.bytes) / seconds / 1e9; }
  double busbw(double seconds) const { return algbw(seconds) * bus_factor(task.op, ranks); }
  // The placement that the interface has of itself: that one is compared.
  std::size_t native_placement() const { return task.op == Collective::all_to_all ? 0 : 1; }
};

// {name, params {op, bytes, dtype, backend, ranks, ...}, metrics {busbw_GBps, ...}, samples_us}
nlohmann::ordered_json coll_entry(const CollMeasurement& measurement,
                                  const BenchCollOptions& options, const MpiSession& session);

std::string peer_header(Collective op);
// Empty where there is no peer.
std::string peer_line(const CollMeasurement& measurement);

}  // namespace trireme
