// Checks all encrypted files of a run: logs, metrics, events, traces (sealed_text.h). With keys it
// authenticates everything. Without, it compares what anybody can: the form of the files, the order
// of their sections, the record of their ends, and the run to which their keys belong.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/keys/log_starts.h"

namespace trireme {

class KeyedTextReader;

struct LogFault {
  ExitCode code = ExitCode::bad_data;
  std::string what;
};

struct RunLogsCheck {
  LogStarts starts;
  std::int64_t last_closed = 0;   // number of the newest start that has left a record, or 0
  std::int64_t closed_files = 0;  // in that record
  std::int64_t files = 0;
  std::int64_t bytes = 0;
  std::int64_t sections = 0;
  std::int64_t unfinished = 0;  // sections without an end
  std::vector<LogFault> faults;
  std::string lack;  // that of lack_of_closing_record()
};

// Returns nothing if no file of the run is encrypted and none should be. reader: null without keys.
// A run may be going on: what it changes meanwhile is checked again. Throws ConfigError that the
// keys cause.
std::optional<RunLogsCheck> check_run_logs(const std::filesystem::path& run,
                                           const KeyedTextReader* reader);

// Returns the plain files of a run that stand where encrypted ones would.
std::vector<std::filesystem::path> plain_files_of_run(const std::filesystem::path& run);

}  // namespace trireme
