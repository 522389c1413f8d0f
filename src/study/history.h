// History is a file to which results are added, one line for each row and kind of samples:
//
//   {"schema": 1, "time": 1795535301.9, "command": "gemm", "name": "gemm",
//    "params": {"m": "96", ...}, "samples": "time_us", "count": 40, "median": 8.1, "low": 8.0,
//    "high": 8.3, "host": "n1", "machine": "0123456789abcdef", "commit": "..."}
//
// The lines of a result are written in one piece under a lock and synced, and removed again if that
// fails. A line that a crash has torn is ignored by readers, and the next writer begins a new one
// after it. Results form one
// series as long as everything but the time, the numbers and the commit is equal; `machine` is a
// digest of the conditions of the measurement.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/study/measured_result.h"

namespace trireme {

struct HistoryEntry {
  double time = 0;
  double median = 0;
  double low = 0;
  double high = 0;
  std::string commit;
};

struct HistorySeries {
  std::string command, name, samples, host, machine;
  std::map<std::string, std::string> params;
  std::vector<HistoryEntry> entries;  // sorted by time

  // Identifies the series within a history.
  std::string key() const;
};

struct History {
  std::vector<HistorySeries> series;  // in the order of their first lines
  std::int64_t torn_lines = 0;        // ignored
};

// Throws DataError, with the number of the line, for a line that is whole but not one of a history.
History parse_history(std::string_view text, const std::string& origin);

// Returns an empty history if the file does not exist.
History read_history(const std::filesystem::path& path);

struct Added {
  std::int64_t lines = 0;
  std::int64_t present = 0;  // not added, because the history has them already
};
// Adds the judged samples of a result. Throws IoError if they cannot be written and synced.
Added add_to_history(const std::filesystem::path& path, const MeasuredResult& result);

// A Level is a part of a series between two changes.
struct Level {
  std::size_t begin = 0;  // index of its first entry
  std::size_t end = 0;
  double median = 0;
  double change = 0;  // from the level before, as a fraction; 0 for the first one
  bool slower = false;
};
// Divides a series at its change points. Neighbouring levels whose medians differ by less than the
// threshold (a fraction) are joined.
std::vector<Level> levels_of(const HistorySeries& series, double threshold);

}  // namespace trireme
