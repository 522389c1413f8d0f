// `trireme bench coll --write-tuning FILE` (--tune) measures every operation and size on every
// backend that can connect these ranks, in turns, and keeps the fastest for each
// (mpi/session/tuning.h).
#pragma once

#include "benchmarks/coll/coll.h"
#include "mpi/session/tuning.h"

namespace trireme {

struct TuneResult {
  Tuning tuning;
  nlohmann::ordered_json
      results;  // entries {name: coll_tune, params, metrics, measurement, samples}
  std::vector<std::string> left_out;  // operations and sizes without time or memory
};

// Prints a table on rank 0. Collective. Ignores backend, root, checks and peer_mpi of the options.
TuneResult bench_tune(const BenchCollOptions& options, MpiSession& session);

// Returns the fastest backend by its seconds, but keeps the one chosen for the previous size while
// it is within 5 % of the fastest, so that noise adds no entries.
std::size_t choose_backend(const std::vector<double>& seconds, std::optional<std::size_t> before);

// Merges neighbouring sizes of one backend into one entry; the last entry has no upper limit.
// fastest: the backend of each size, sorted by size.
std::vector<TuningEntry> tuning_entries(
    Collective op, const std::vector<std::pair<std::int64_t, Backend>>& fastest);

}  // namespace trireme
