#include "src/keys/run_logs_check.h"

#include <algorithm>
#include <functional>
#include <set>

#include <sys/stat.h>

#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/keys/closed_logs.h"
#include "src/keys/encrypted_files.h"
#include "src/keys/keyed_text_reader.h"
#include "src/keys/sealed_form.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMostFileBytes = std::int64_t{1} << 30;  // as commands read them

class LogsChecker {
 public:
  LogsChecker(fs::path run, const KeyedTextReader* reader)
      : run_(std::move(run)), reader_(reader) {}

  RunLogsCheck check();

 private:
  // Calls a function whose errors become faults.
  void attempt(const std::function<void()>& what);
  void add_fault(ExitCode code, const std::string& what) { found_.faults.push_back({code, what}); }
  void check_starts();
  void check_numbers();
  void check_file(const fs::path& path);
  void check_unopened(const std::string& text, const fs::path& path);
  void check_missing_files();
  std::int64_t number_of(const std::string& key) const;

  fs::path run_;
  const KeyedTextReader* reader_;
  std::optional<ClosedLogs> closed_;  // the newest record
  RunLogsCheck found_;
};

void LogsChecker::attempt(const std::function<void()>& what) {
  try {
    what();
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& error) {
    // Several files may lack the same key.
    const bool is_known =
        std::any_of(found_.faults.begin(), found_.faults.end(),
                    [&](const LogFault& each) { return each.what == error.what(); });
    if (!is_known) {
      add_fault(error.exit_code(), error.what());
    }
  }
}

RunLogsCheck LogsChecker::check() {
  std::error_code none;
  if (!fs::is_directory(run_ / kLogKeysFolder, none)) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} holds encrypted files, but no folder {}: their keys were removed",
                          printable(run_.string()), kLogKeysFolder));
    return std::move(found_);
  }
  check_starts();
  for (const fs::path& path : encrypted_files(run_)) {
    attempt([&] { check_file(path); });
  }
  for (const fs::path& path : plain_files(run_)) {
    attempt([&] { check_file(path); });
  }
  for (const fs::path& path : misplaced_entries(run_)) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} is no file: a file of the run was replaced by a link to what is "
                          "elsewhere, or by something else",
                          printable(path.string())));
  }
  check_missing_files();
  return std::move(found_);
}

void LogsChecker::check_starts() {
  found_.starts = list_log_starts(run_);
  if (!found_.starts.damage.empty()) {
    add_fault(ExitCode::bad_data, found_.starts.damage);
  }
  attempt([&] { check_one_run(found_.starts, run_); });
  check_numbers();
  for (const LogStart& start : found_.starts.all) {
    attempt([&] {
      (void)read_start_keys(run_, start.key);
      std::error_code none;
      if (fs::exists(closed_logs_file(run_, start.key), none)) {
        (void)read_closed_logs(run_, start);
      }
      if (reader_ != nullptr) {
        reader_->check_start(run_, start);
      }
    });
  }
  const LogStart* const last = last_closed_start(found_.starts, run_);
  if (last != nullptr) {
    try {
      closed_ = read_closed_logs(run_, *last);
      found_.last_closed = last->number;
      found_.closed_files = std::ssize(closed_->files);
    } catch (const Error&) {
      // It is among the faults already.
    }
  }
  found_.lack = lack_of_closing_record(run_);
}

// Starts are numbered from 1. One that is killed before it has stored its key takes no number.
void LogsChecker::check_numbers() {
  std::int64_t next = 1;
  for (const LogStart& start : found_.starts.all) {
    if (start.number == 0) {
      return;  // of a run without an identity
    }
    if (start.number < next) {
      add_fault(ExitCode::bad_data,
                fmt::format("{}: two keys belong to start {}: one of them was put here",
                            printable((run_ / kLogKeysFolder).string()), start.number));
    } else if (start.number > next) {
      const std::string gone = start.number == next + 1
                                   ? fmt::format("start {}", next)
                                   : fmt::format("starts {} to {}", next, start.number - 1);
      add_fault(ExitCode::not_found,
                fmt::format("{}: the key of {} is gone: it was removed, and nothing opens what it "
                            "encrypted",
                            printable((run_ / kLogKeysFolder).string()), gone));
    }
    next = start.number + 1;
  }
}

std::int64_t LogsChecker::number_of(const std::string& key) const {
  const auto at = std::find_if(found_.starts.all.begin(), found_.starts.all.end(),
                               [&](const LogStart& start) { return start.key == key; });
  return at != found_.starts.all.end() ? at->number : read_start_keys(run_, key).start.number;
}

void LogsChecker::check_file(const fs::path& path) {
  const std::string text = read_file(path, kMostFileBytes);
  if (!text.empty() && !is_sealed_text(text)) {
    (void)plain_reader().read(path);  // refuses it, because the run encrypts its files
  }
  check_unopened(text, path);
  if (reader_ != nullptr) {
    (void)reader_->open_sections(text, path);
  }
  ++found_.files;
  found_.bytes += std::ssize(text);
}

void LogsChecker::check_unopened(const std::string& text, const fs::path& path) {
  const SealedForm form = read_sealed_form(text, path.string());
  for (const std::string& key : form.keys) {
    (void)number_of(key);
  }
  if (!text.empty()) {
    check_first_section(form.previous, path);
  }
  if (closed_) {
    const std::int64_t first = form.first_key.empty() ? 0 : number_of(form.first_key);
    check_not_cut({*closed_, found_.last_closed, first}, text, run_, path);
  }
  found_.sections += form.sections;
  found_.unfinished += form.unfinished;
}

void LogsChecker::check_missing_files() {
  if (!closed_) {
    return;
  }
  // A start that traces removes the traces of earlier ones.
  const bool are_traces_kept = found_.starts.all.back().number == found_.last_closed;
  for (const ClosedFile& file : closed_->files) {
    std::error_code none;
    const bool is_kept = are_traces_kept || !file.name.starts_with("trace/");
    if (is_kept && !fs::exists(fs::symlink_status(run_ / file.name, none))) {
      add_fault(ExitCode::not_found,
                fmt::format("{} is gone, which start {} of the run has left",
                            printable((run_ / file.name).string()), found_.last_closed));
    }
  }
}

// What tells whether a live run has written to its files.
struct FileState {
  std::string path;
  std::int64_t bytes = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};

std::vector<FileState> states_of(const fs::path& run) {
  std::vector<fs::path> paths = encrypted_files(run);
  const std::vector<fs::path> plain = plain_files(run);
  paths.insert(paths.end(), plain.begin(), plain.end());
  for (const LogStart& start : list_log_starts(run).all) {
    paths.push_back(log_key_file(run, start.key));
    paths.push_back(closed_logs_file(run, start.key));
  }
  std::vector<FileState> states;
  for (const fs::path& path : paths) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0) {
      states.push_back(
          {path.string(), status.st_size, status.st_ctim.tv_sec, status.st_ctim.tv_nsec});
    }
  }
  return states;
}

bool has_encrypted_files(const fs::path& run) {
  std::error_code none;
  return fs::exists(fs::symlink_status(run / kLogKeysFolder, none)) ||
         !encrypted_files(run).empty();
}

}  // namespace

std::optional<RunLogsCheck> check_run_logs(const fs::path& run, const KeyedTextReader* reader) {
  constexpr int kMostTries = 3;
  if (!has_encrypted_files(run)) {
    return std::nullopt;
  }
  const fs::path folder = fs::absolute(run).lexically_normal();
  for (int tries = 1;; ++tries) {
    const std::vector<FileState> before = states_of(folder);
    RunLogsCheck found = LogsChecker(folder, reader).check();
    if (found.faults.empty() || tries == kMostTries || states_of(folder) == before) {
      return found;
    }
  }
}

std::vector<fs::path> plain_files_of_run(const fs::path& run) { return plain_files(run); }

}  // namespace trireme
