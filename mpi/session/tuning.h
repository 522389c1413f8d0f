// Tuning says which backend is fastest for which operation and size on a cluster, as measured by
// `trireme bench coll --write-tuning FILE`, and is stored in this file:
//
//   {"schema": 1, "ranks": 8, "hosts": 2, "ranks_per_host": 4,
//    "entries": [{"op": "all_reduce", "max_bytes": 65536, "backend": "mpi"},
//                {"op": "all_reduce", "max_bytes": 1152921504606846976, "backend": "shm"}]}
//
// An entry applies to sizes up to max_bytes that are larger than that of the previous entry of the
// same operation. Plain values and pure functions.
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
  std::int64_t max_bytes = 0;  // of the whole array, as `trireme bench coll` reports it
  Backend backend = Backend::mpi;
  friend bool operator==(const TuningEntry&, const TuningEntry&) = default;
};

struct Tuning {
  int ranks = 1;
  int hosts = 1;
  int ranks_per_host = 1;            // on the host with the most ranks
  std::vector<TuningEntry> entries;  // those of one operation are sorted by size

  // Returns nothing for an operation or a size that no entry covers.
  std::optional<Backend> choose(std::string_view op, std::int64_t bytes) const;
  friend bool operator==(const Tuning&, const Tuning&) = default;
};

const std::vector<std::string>& tuned_operations();

std::string to_text(const Tuning& tuning);
// Throws DataError, which names the field, for anything that to_text() does not write.
Tuning parse_tuning(std::string_view text);

}  // namespace trireme
