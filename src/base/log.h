// Log: what a rank has to say. People read lines on stderr (information from rank 0 only, warnings
// and errors from every rank); programs read JSON lines in the rank's own file. Neither a full disk
// nor a closed stderr stops the program. Owned by the app and passed down; safe from any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

enum class LogLevel { debug, info, warning, error };

// ConfigError for another word than debug, info, warning, error.
LogLevel parse_log_level(std::string_view word);

struct LogOptions {
  int rank = 0;
  int ranks = 1;
  std::string host = {};
  LogLevel terminal_level = LogLevel::info;
  // Where rank-00000.jsonl goes; made if absent. Empty: no file.
  std::filesystem::path folder = {};
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
  // Lines that could not be written to the file.
  std::int64_t dropped_lines() const;

 private:
  void write(LogLevel level, std::string_view message);

  struct State;
  std::unique_ptr<State> state_;
};

// Where stdin, stdout or stderr is closed, opens /dev/null in its place: otherwise the next file
// that is opened takes the number, and what is meant for people lands in it. main()'s first
// statement.
void open_standard_streams();
// This machine's name.
std::string host_name();
// logs/rank-00042.jsonl
std::filesystem::path log_file(const std::filesystem::path& folder, int rank);

}  // namespace trireme
