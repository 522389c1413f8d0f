#include "src/base/log.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <mutex>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include "src/base/append_file.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/base/terminal.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  constexpr std::array kSame = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                spdlog::level::err};
  return kSame[static_cast<std::size_t>(level)];
}

std::string_view level_word(spdlog::level::level_enum level) {
  return level >= spdlog::level::err    ? kLevels[3]
         : level >= spdlog::level::warn ? kLevels[2]
         : level >= spdlog::level::info ? kLevels[1]
                                        : kLevels[0];
}

// write(2) to a pipe without a reader raises SIGPIPE, which must not end the process here. Other
// code's handling of the signal must not change.
void write_ignoring_errors(int fd, std::string_view text) {
  sigset_t pipe_signal;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) {
      continue;
    }
    if (put <= 0) {
      break;
    }
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  if (!was_pending) {
    const timespec now{};
    while (sigtimedwait(&pipe_signal, nullptr, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Prints "2026-11-22 12:34:56 rank 3: warning: ..."; on a terminal, the line replaces a progress
// bar.
class TerminalSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit TerminalSink(std::string who) : who_(std::move(who)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const bool serious = message.level >= spdlog::level::warn;
    // Information needs no rank, because only rank 0 prints it.
    const std::string prefix = message.level == spdlog::level::info
                                   ? ""
                                   : fmt::format("{}{}: ", who_, level_word(message.level));
    const std::string text =
        fmt::format("{} {}{}", time_text(message.time), prefix,
                    printable_lines({message.payload.data(), message.payload.size()}));
    const bool colored = serious && use_color(terminal_columns() > 0);
    write_ignoring_errors(STDERR_FILENO,
                          fmt::format("{}{}{}{}\n", line_start(), colored ? "\x1b[33m" : "", text,
                                      colored ? "\x1b[0m" : ""));
  }
  void flush_() override {}

 private:
  std::string who_;
};

}  // namespace

struct Log::State {
  State(const LogOptions& the_options, std::string who)
      : options(the_options), terminal("trireme", std::make_shared<TerminalSink>(std::move(who))) {}

  ~State() {
    if (dropped > 0) {
      warn_on_terminal(fmt::format("{} lacks {} that could not be written",
                                   log_file(options.folder, options.rank).string(),
                                   counted(dropped, "line")));
    }
  }

  // Fields have a fixed order: time, level, rank, host, then those of the line.
  std::string json_text(LogLevel severity, const nlohmann::ordered_json& own) const {
    const std::string_view level = kLevels[static_cast<std::size_t>(severity)];
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    nlohmann::ordered_json line = {
        {"time", now.count()}, {"level", level}, {"rank", options.rank}, {"host", options.host}};
    line.update(own);
    using Handler = nlohmann::ordered_json::error_handler_t;
    return line.dump(-1, ' ', false, Handler::replace) + "\n";
  }

  // Warns about the file itself, where the warning can't be written.
  void warn_on_terminal(const std::string& message) {
    if (!options.json) {
      terminal.warn(message);
    } else if (terminal.should_log(spdlog::level::warn)) {
      write_ignoring_errors(STDERR_FILENO, json_text(LogLevel::warning, {{"message", message}}));
    }
  }

  void append(LogLevel severity, const nlohmann::ordered_json& own) {
    const bool shown = options.json && terminal.should_log(spdlog_level(severity));
    if (options.folder.empty() && !shown) {
      return;
    }
    const std::string text = json_text(severity, own);
    const std::lock_guard lock(mutex);
    if (shown) {
      write_ignoring_errors(STDERR_FILENO, text);
    }
    if (file != nullptr) {
      append_to_file(text);
    } else if (!options.folder.empty()) {
      held += text;
    }
  }

  void append_to_file(const std::string& text) {
    const auto plain = static_cast<std::int64_t>(text.size());
    const std::int64_t bytes = sealer == nullptr ? plain : plain / 3 * 4;
    rotate_before(bytes);
    if (!file->append(text) && ++dropped == 1) {
      warn_on_terminal(file->first_failure() +
                       "; lines are missing from now on, training continues");
    }
    file_bytes += bytes;
  }

  void open_file() {
    const std::filesystem::path path = log_file(options.folder, options.rank);
    file = std::make_unique<AppendFile>(
        sealer == nullptr
            ? AppendFile::open_lines(path)
            : AppendFile::open_lines(path, sealer->sealer(path), last_rotated_line()));
    std::error_code absent;
    const auto size = std::filesystem::file_size(path, absent);
    file_bytes = absent ? 0 : static_cast<std::int64_t>(size);
  }

  // Returns the last line of the file that was rotated away, which an encrypted file continues.
  std::string last_rotated_line() const {
    const std::filesystem::path older = older_log_file(options.folder, options.rank);
    std::error_code absent;
    return std::filesystem::exists(older, absent) ? last_line_of(older) : "";
  }

  // Starts a new file if the limit is reached. If that fails, writing continues in the old file.
  void rotate_before(std::int64_t bytes) {
    if (options.rotate_bytes == 0 || file_bytes == 0 ||
        file_bytes + bytes <= options.rotate_bytes) {
      return;
    }
    file->end_section();
    std::error_code failed;
    std::filesystem::rename(log_file(options.folder, options.rank),
                            older_log_file(options.folder, options.rank), failed);
    file_bytes = 0;
    if (failed) {
      return;
    }
    try {
      open_file();
    } catch (const Error&) {
    }
  }

  LogOptions options;
  spdlog::logger terminal;
  std::mutex mutex;
  std::unique_ptr<AppendFile> file;
  std::shared_ptr<const RunSealer> sealer;  // null: the file is plain
  std::string held;                         // lines that wait for it
  std::int64_t file_bytes = 0;
  std::int64_t dropped = 0;
};

void open_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) {
      // open() returns the lowest free descriptor. Output that nobody can receive is an error, so a
      // closed stdout is opened for reading only.
      (void)::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
    }
  }
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown-host";
}

std::filesystem::path log_file(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("rank-{:05}.jsonl", rank);
}

std::filesystem::path older_log_file(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("rank-{:05}.1.jsonl", rank);
}

bool use_color(bool is_terminal) {
  const auto value = [](const char* name) {
    const char* const text = std::getenv(name);
    return std::string_view(text == nullptr ? "" : text);
  };
  if (!value("NO_COLOR").empty() || value("TERM") == "dumb") {
    return false;
  }
  const std::string_view force = value("CLICOLOR_FORCE");
  return is_terminal || (!force.empty() && force != "0");
}

std::string time_text(std::chrono::system_clock::time_point time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::array<char, 32> text{};
  (void)std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &local);
  return text.data();
}

Log::Log(const LogOptions& options) {
  LogOptions complete = options;
  if (complete.host.empty()) {
    complete.host = host_name();
  }
  state_ = std::make_unique<State>(complete,
                                   options.ranks > 1 ? fmt::format("rank {}: ", options.rank) : "");
  // Information of other ranks is written to their files only.
  const LogLevel least = options.rank == 0 ? options.terminal_level
                                           : std::max(options.terminal_level, LogLevel::warning);
  state_->terminal.set_level(spdlog_level(least));
  if (!options.folder.empty()) {
    make_directories(options.folder);
    if (!options.waits_for_keys) {
      state_->open_file();
    }
  }
  event("start", {{"pid", ::getpid()}, {"ranks", options.ranks}});
}

Log::~Log() = default;

void Log::write(LogLevel level, std::string_view message) {
  if (!state_->options.json) {
    state_->terminal.log(spdlog_level(level), message);
  }
  state_->append(level, {{"message", message}});
}

void Log::print_info(std::string_view text) {
  if (!state_->options.json) {
    state_->terminal.info(text);
  }
}

void Log::event(std::string_view name, const nlohmann::json& fields) {
  nlohmann::ordered_json own = {{"event", name}};
  for (const auto& [key, value] : fields.items()) {
    own[key] = value;
  }
  state_->append(LogLevel::info, own);
}

void Log::event(std::string_view name, const nlohmann::json& fields, std::string_view text) {
  print_info(text);
  event(name, fields);
}

void Log::table(std::string_view title, const std::vector<std::string>& rows) {
  std::string text(title);
  for (const std::string& row : rows) {
    text += "\n  " + row;
  }
  print_info(text);
}

void Log::write_encrypted(std::shared_ptr<const RunSealer> sealer) {
  State& s = *state_;
  check(s.options.waits_for_keys && s.file == nullptr, "the log waits for its keys");
  const std::lock_guard lock(s.mutex);
  s.sealer = std::move(sealer);
  s.open_file();
  s.append_to_file(s.held);
  s.held.clear();
}

std::int64_t Log::dropped_lines() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dropped;
}

}  // namespace trireme
