// Turns the measurement of one operation and size by `trireme bench coll` into an entry of the JSON
// document and a line that compares it with MPI.
#pragma once

#include <array>
#include <optional>

#include "benchmarks/coll/coll.h"
#include "benchmarks/coll/contestant.h"
#include "benchmarks/report.h"
#include "benchmarks/sampling.h"

namespace trireme {

struct CollMeasurement {
  CollectiveTask task;
  CollectiveSize size;
  int ranks = 1;
  std::array<TurnSamples, 2> ours;  // [0] out of place, [1] in place
  std::optional<std::array<TurnSamples, 2>> peer;
  std::array<std::int64_t, 2> wrong = {0, 0};  // wrong elements over all ranks, indexed as `ours`
  std::optional<double> memory_rate;           // bytes per second and rank, with all ranks at work

  HowMeasured how;

  // Returns how many seconds went into more samples than are needed.
  double spare_seconds() const;
  // Both return decimal gigabytes per second.
  double algbw(double seconds) const { return static_cast<double>(size.bytes) / seconds / 1e9; }
  double busbw(double seconds) const { return algbw(seconds) * bus_factor(task.op, ranks); }
  // Returns the placement that our interface supports without a copy; it is the one compared.
  std::size_t native_placement() const { return task.op == Collective::all_to_all ? 0 : 1; }
};

// Returns the name of what connects the ranks' memory: "shm", or "nccl" for GPUs.
std::string backend_text(const BenchCollOptions& options);

// Returns {name, params {op, bytes, dtype, backend, ranks, ...}, metrics {busbw_GBps, ...},
// measurement, samples}.
nlohmann::ordered_json coll_entry(const CollMeasurement& measurement,
                                  const BenchCollOptions& options, const MpiSession& session);

std::string peer_header(Collective op);
// Returns "" if there is no peer.
std::string peer_line(const CollMeasurement& measurement);

}  // namespace trireme
