#include "src/keys/keyed_text_reader.h"

#include <utility>

#include "src/base/append_file.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/keys/log_keys.h"
#include "src/keys/rotated_log.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMostLogKeysBytes = std::int64_t{16} << 20;

std::string read_log_keys(const fs::path& file) {
  try {
    return read_file(file, kMostLogKeysBytes);
  } catch (const NotFound&) {
    throw DataError(
        fmt::format("{} is missing, without which nothing opens the file: it was removed, or the "
                    "file comes from another run",
                    printable(file.string())));
  }
}

// Returns the start to which a keys.json in the folder of this data key belongs.
LogStart start_of(const WrappedKeys& wrapped, const std::string& id, const std::string& origin) {
  try {
    if (wrapped.data_key == id) {
      return parse_log_contents(wrapped.contents, id);
    }
  } catch (const DataError&) {
    // It is described below.
  }
  throw DataError(
      fmt::format("{}: holds another key than that of its folder: it was exchanged or changed",
                  printable(origin)));
}

// A file begins with the section that follows the end of the log before it, if there is one.
void check_beginning(const OpenedText& opened, const fs::path& path) {
  if (is_rotated_log(path)) {
    return;  // the log before it was replaced
  }
  const fs::path older = rotated_log(path);
  const std::string last = !older.empty() && fs::exists(older) ? last_line_of(older) : "";
  if (opened.previous != digest_of_line(last)) {
    throw DataError(fmt::format(
        "{}, line 1: the first section does not follow {}: sections were removed or exchanged{}",
        printable(path.string()),
        last.empty() ? "the beginning of a file" : "the end of " + printable(older.string()),
        older.empty() ? "" : ", or the log was rotated just now: then try again"));
  }
}

}  // namespace

const KeyRing& KeyedTextReader::ring() const {
  if (ring_ == nullptr) {
    own_ = std::make_unique<const KeyRing>(uris_());
    ring_ = own_.get();
  }
  return *ring_;
}

const KeyedTextReader::KeyOfStart& KeyedTextReader::key_of(const fs::path& run,
                                                           const std::string& id) const {
  const fs::path file = log_key_file(run, id);
  if (const auto known = keys_.find(file); known != keys_.end()) {
    return known->second;
  }
  const std::string origin = file.string();
  const WrappedKeys wrapped = parse_wrapped_keys(read_log_keys(file), origin);
  const LogStart start = start_of(wrapped, id, origin);
  if (wrapped.recipients.empty()) {
    throw DataError(
        fmt::format("{}: the key was destroyed, and nothing opens the files that were "
                    "encrypted with it any more",
                    printable(origin)));
  }
  DataKey key = ring().unwrap(wrapped, origin);
  check_wrapped_keys(wrapped, key, wrapped.contents, origin);
  return keys_.emplace(file, KeyOfStart{std::move(key), start}).first->second;
}

// Finds out whether lines are missing that a start has left which ended in good order.
void KeyedTextReader::check_end(const std::string& text, const OpenedText& opened,
                                const fs::path& run, const fs::path& path) const {
  const LogStarts starts = list_log_starts(run);
  check_one_run(starts, run);
  const LogStart* const last = last_closed_start(starts, run);
  if (last == nullptr) {
    return;
  }
  const KeyOfStart& known = key_of(run, last->key);
  const ClosedLogs closed = read_closed_logs(run, known.start, known.key);
  const auto name_of = [&](const fs::path& file) {
    return file.lexically_relative(run).generic_string();
  };
  const std::int64_t first =
      opened.first_key.empty() ? 0 : key_of(run, opened.first_key).start.number;
  ClosedCheck check{closed, known.start.number, first, name_of(path), ""};
  if (is_rotated_log(path)) {
    const fs::path current = current_log(path);
    check.rotated = name_of(current);
    if (closed.find(check.rotated) != nullptr && !fs::exists(current)) {
      throw DataError(fmt::format("{} is missing, which start {} of the run has left beside {}",
                                  printable(current.string()), check.number,
                                  printable(path.filename().string())));
    }
  }
  check_not_cut(check, text, path);
}

OpenedText KeyedTextReader::open_sections(const std::string& text, const fs::path& path) const {
  const fs::path run = run_with_log_keys(path);
  if (run.empty()) {
    throw DataError(
        fmt::format("{} is encrypted, but no folder {} lies beside it or above it, without which "
                    "nothing opens it: leave it in its run's folder",
                    printable(path.string()), kLogKeysFolder));
  }
  if (admit_ && !admitted_.contains(run)) {
    admit_(run);
    admitted_.insert(run);
  }
  const fs::path full = fs::absolute(path).lexically_normal();
  OpenedText opened = open_sealed_text(
      text, name_in_run(run, full),
      [&](const std::string& id) -> const DataKey& { return key_of(run, id).key; }, path.string());
  if (!text.empty()) {
    check_beginning(opened, full);
  }
  check_end(text, opened, run, full);
  return opened;
}

std::string KeyedTextReader::open(const std::string& text, const fs::path& path) const {
  return open_sections(text, path).text;
}

}  // namespace trireme
