// `trireme bench coll --write-tuning FILE` (--tune): measures every operation and size on every
// backend that can connect these ranks, in turns, and keeps the fastest of each
// (mpi/session/tuning.h).
#pragma once

#include "mpi/session/tuning.h"
#include "src/app/bench/coll.h"

namespace trireme {

struct TuneResult {
  Tuning tuning;
  nlohmann::ordered_json results;  // entries {name: coll_tune, params, metrics}
};

// Prints a table on rank 0. Collective. options.backend, root, checks and peer_mpi mean nothing.
TuneResult bench_tune(const BenchCollOptions& options, MpiSession& session);

// The fastest by its seconds; the one chosen for the size before stays while it is within 5 % of
// that, so that noise makes no entries.
std::size_t choose_backend(const std::vector<double>& seconds, std::optional<std::size_t> before);

// Neighbouring sizes of one backend as one entry, the last without a limit. `fastest` holds the
// backend of each size, in order of size.
std::vector<TuningEntry> tuning_entries(
    Collective op, const std::vector<std::pair<std::int64_t, Backend>>& fastest);

}  // namespace trireme
