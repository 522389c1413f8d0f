// Log writes the messages of a rank: lines for people on stderr (information from rank 0 only,
// warnings and errors from every rank), and JSON lines for programs in the rank's own file. Neither
// a full disk nor a closed stderr stops the program. Owned by the app and passed down; usable from
// any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class RunSealer;

enum class LogLevel { debug, info, warning, error };

// Returns whether to colour text: never if NO_COLOR is set (no-color.org) or TERM is dumb; else
// always if CLICOLOR_FORCE is set and not 0; else only on a terminal.
bool use_color(bool is_terminal);
// Returns "2026-11-22 13:30:06" in local time.
std::string time_text(std::chrono::system_clock::time_point time);

struct LogOptions {
  int rank = 0;
  int ranks = 1;
  std::string host = {};
  LogLevel terminal_level = LogLevel::info;
  // The folder for rank-00000.jsonl, which is created if needed. If empty, no file is written.
  std::filesystem::path folder = {};
  // Prints the JSON lines of the file on stderr instead of text.
  bool json = false;
  // Before the file would exceed this size, it is renamed to rank-00000.1.jsonl, replacing an older
  // one, and a new file is started. 0: never.
  std::int64_t rotate_bytes = 0;
  // Keeps the lines for the file in memory until write_encrypted() is called, since the keys are
  // not open yet. Without that call, the file is not written.
  bool waits_for_keys = false;
};

class Log {
 public:
  // The first line of the file is an event "start" with pid, rank, ranks and host.
  explicit Log(const LogOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message) { write(LogLevel::debug, message); }
  void info(std::string_view message) { write(LogLevel::info, message); }
  void warning(std::string_view message) { write(LogLevel::warning, message); }
  void error(std::string_view message) { write(LogLevel::error, message); }
  // Logs an event for programs only: {"time", "level", "rank", "host", "event": name, ...fields}.
  void event(std::string_view name, const nlohmann::json& fields);
  // Logs the same event, and a line of information for people.
  void event(std::string_view name, const nlohmann::json& fields, std::string_view text);
  // Prints a table for people only: a line with the title, then the rows without time and rank,
  // which leaves 78 columns for them. Programs find the numbers in an event.
  void table(std::string_view title, const std::vector<std::string>& rows);
  // Writes the lines for the file, those so far and all that follow, encrypted. Precondition: the
  // options said waits_for_keys. Throws if the file cannot be opened.
  void write_encrypted(std::shared_ptr<const RunSealer> sealer);
  // Returns how many lines could not be written to the file.
  std::int64_t dropped_lines() const;

 private:
  void write(LogLevel level, std::string_view message);
  void print_info(std::string_view text);

  struct State;
  std::unique_ptr<State> state_;
};

// Opens /dev/null for each of stdin, stdout and stderr that is closed. Otherwise the next file
// opened would get its number and receive the messages. A closed stdout is opened for reading only,
// so that printing to it fails. Must be the first statement of main().
void open_standard_streams();
// Returns the name of this machine.
std::string host_name();
// Return logs/rank-00042.jsonl, and its predecessor logs/rank-00042.1.jsonl.
std::filesystem::path log_file(const std::filesystem::path& folder, int rank);
std::filesystem::path older_log_file(const std::filesystem::path& folder, int rank);

}  // namespace trireme
