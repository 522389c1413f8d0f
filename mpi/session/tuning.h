// Tuning: which backend is fastest for which operation and size on a cluster, as measured by
// `trireme bench coll --write-tuning FILE`, and the file it is kept in:
//
//   {"schema": 1, "ranks": 8, "hosts": 2, "ranks_per_host": 4,
//    "entries": [{"op": "all_reduce", "max_bytes": 65536, "backend": "mpi"},
//                {"op": "all_reduce", "max_bytes": 1152921504606846976, "backend": "shm"}]}
//
// An entry holds up to its size, from the entry of the same operation before it. Values; pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/session/backend.h"

namespace trireme {

struct TuningEntry {
  std::string op;              // one of tuned_operations()
  std::int64_t max_bytes = 0;  // of the whole array, as `trireme bench coll` counts them
  Backend backend = Backend::mpi;
  friend bool operator==(const TuningEntry&, const TuningEntry&) = default;
};

struct Tuning {
  int ranks = 1;
  int hosts = 1;
  int ranks_per_host = 1;            // of the host with the most
  std::vector<TuningEntry> entries;  // of one operation in order of size

  // Nothing for an operation or a size that no entry covers.
  std::optional<Backend> choose(std::string_view op, std::int64_t bytes) const;
  friend bool operator==(const Tuning&, const Tuning&) = default;
};

const std::vector<std::string>& tuned_operations();

std::string to_text(const Tuning& tuning);
// DataError, naming the field, for anything that to_text() does not write.
Tuning parse_tuning(std::string_view text);

}  // namespace trireme
