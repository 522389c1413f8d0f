// Log: the messages of a rank. People read lines on stderr (information from rank 0 only, warnings
// and errors from every rank); programs read JSON lines in the rank's own file. Neither a full disk
// nor a closed stderr stops the program. Owned by the app and passed down; safe from any thread.
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

enum class LogLevel { debug, info, warning, error };

// ConfigError for another word than debug, info, warning, error.
LogLevel parse_log_level(std::string_view word);

// Whether to colour text: not if NO_COLOR is set (no-color.org) or TERM is dumb; always if
// CLICOLOR_FORCE is set and not 0; otherwise on a terminal.
bool use_color(bool is_terminal);
// "2026-11-22 13:30:06", local time.
std::string time_text(std::chrono::system_clock::time_point time);

struct LogOptions {
  int rank = 0;
  int ranks = 1;
  std::string host = {};
  LogLevel terminal_level = LogLevel::info;
  // The folder for rank-00000.jsonl, created if it is missing. Empty: no file.
  std::filesystem::path folder = {};
  // Print on stderr the JSON lines of the file.
  bool json = false;
  // A file of this size is renamed to rank-00000.1.jsonl, in place of an older one, and a new one
  // is started. 0: never.
  std::int64_t rotate_bytes = 0;
};

class Log {
 public:
  // The file's first line is an event "start" with pid, rank, ranks and host.
  explicit Log(const LogOptions& options);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message) { write(LogLevel::debug, message); }
  void info(std::string_view message) { write(LogLevel::info, message); }
  void warning(std::string_view message) { write(LogLevel::warning, message); }
  void error(std::string_view message) { write(LogLevel::error, message); }
  // For programs only: {"time", "level", "rank", "host", "event": name, ...fields}.
  void event(std::string_view name, const nlohmann::json& fields);
  // The same, and for people a line of information.
  void event(std::string_view name, const nlohmann::json& fields, std::string_view text);
  // For people only: a line with a title and below it the rows, without time and rank, so that 78
  // columns are left for them. Programs find the figures in an event.
  void table(std::string_view title, const std::vector<std::string>& rows);
  // Lines that could not be written to the file.
  std::int64_t dropped_lines() const;

 private:
  void write(LogLevel level, std::string_view message);
  void print_info(std::string_view text);

  struct State;
  std::unique_ptr<State> state_;
};

// Opens /dev/null in the place of a closed stdin, stdout or stderr: otherwise the next file that is
// opened would take its number and receive the messages. The first statement of main().
void open_standard_streams();
// This machine's name.
std::string host_name();
// logs/rank-00042.jsonl, and the file before it, logs/rank-00042.1.jsonl.
std::filesystem::path log_file(const std::filesystem::path& folder, int rank);
std::filesystem::path older_log_file(const std::filesystem::path& folder, int rank);

}  // namespace trireme
