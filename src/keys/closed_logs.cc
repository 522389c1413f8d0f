#include "src/keys/closed_logs.h"

#include <algorithm>
#include <array>
#include <system_error>

#include <nlohmann/json.hpp>

#include "src/base/append_file.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/base/sealed_json.h"
#include "src/keys/encrypted_files.h"
#include "src/keys/rotated_log.h"
#include "src/keys/sealed_text.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kClosedFormat = "trireme-closed-logs";
constexpr std::int64_t kClosedVersion = 1;
constexpr std::int64_t kMostClosedBytes = std::int64_t{64} << 20;
constexpr const char* kClosedLogsName = "closed.json";

bool is_hex_text(std::string_view text, std::size_t count) {
  return text.size() == count &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

ClosedFile parse_closed_file(const json& object) {
  ClosedFile file{text_field(object, "name"), count_field(object, "bytes"),
                  text_field(object, "last")};
  if (!is_file_name(file.name)) {
    throw DataError("the name of a file has other characters than those of a run's files");
  }
  if (!is_hex_text(file.last, 64)) {
    throw DataError(
        fmt::format("`last` of {} does not have 64 hexadecimal digits", printable(file.name)));
  }
  return file;
}

ClosedLogs parse_closed_fields(const json& object) {
  if (text_field(object, "format") != kClosedFormat) {
    throw DataError("not a record of closed logs");
  }
  ClosedLogs closed;
  closed.data_key = text_field(object, "data_key");
  closed.contents = text_field(object, "contents");
  closed.mac = text_field(object, "mac");
  if (!is_hex_text(closed.data_key, 32) || !is_hex_text(closed.mac, 64)) {
    throw DataError("data_key or mac does not have its number of hexadecimal digits");
  }
  for (const json& file : array_field(object, "files")) {
    closed.files.push_back(parse_closed_file(file));
  }
  return closed;
}

// Returns the number of bytes up to the end of the last whole line.
std::int64_t end_of_last_line(const fs::path& path) {
  const File file = File::open_to_read(path);
  std::array<char, 4096> chunk{};
  for (std::int64_t end = file.size(); end > 0;) {
    const std::int64_t begin = std::max<std::int64_t>(0, end - std::ssize(chunk));
    file.read_exactly_at(begin, chunk.data(), end - begin);
    const std::string_view text(chunk.data(), static_cast<std::size_t>(end - begin));
    if (const std::size_t newline = text.rfind('\n'); newline != std::string_view::npos) {
      return begin + static_cast<std::int64_t>(newline) + 1;
    }
    end = begin;
  }
  return 0;
}

// Returns whether the text begins with what the record says of a file.
bool begins_with_file(std::string_view text, const ClosedFile* file) {
  if (file == nullptr || file->bytes > std::ssize(text)) {
    return false;
  }
  if (file->bytes == 0) {
    return true;
  }
  const std::string_view before = text.substr(0, static_cast<std::size_t>(file->bytes));
  if (before.back() != '\n') {
    return false;
  }
  const std::string_view line = before.substr(0, before.size() - 1);
  const std::size_t begin = line.rfind('\n');
  return digest_of_line(begin == std::string_view::npos ? line : line.substr(begin + 1)) ==
         file->last;
}

DataError taken_from_elsewhere(const fs::path& file) {
  return DataError(
      fmt::format("{}: changed by someone who does not have the data key, or taken from another "
                  "start",
                  printable(file.string())));
}

}  // namespace

std::string ClosedLogs::expected_mac(const DataKey& key) const {
  std::string text = fmt::format("{} {}\n", data_key, contents);
  for (const ClosedFile& file : files) {
    text += fmt::format("{} {} {}\n", file.name, file.bytes, file.last);
  }
  return key.mac("closed", text);
}

const ClosedFile* ClosedLogs::find(std::string_view name) const {
  const auto at = std::find_if(files.begin(), files.end(),
                               [&](const ClosedFile& file) { return file.name == name; });
  return at == files.end() ? nullptr : &*at;
}

std::string to_text(const ClosedLogs& closed) {
  ordered_json files = ordered_json::array();
  for (const ClosedFile& file : closed.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"last", file.last}});
  }
  return seal_json({{"version", kClosedVersion},
                    {"format", kClosedFormat},
                    {"data_key", closed.data_key},
                    {"contents", closed.contents},
                    {"files", std::move(files)},
                    {"mac", closed.mac}});
}

ClosedLogs parse_closed_logs(std::string_view text, const std::string& origin) {
  try {
    return parse_closed_fields(unseal_json(text, kClosedVersion));
  } catch (const DataError& error) {
    throw data_error_in(origin, error);
  }
}

fs::path closed_logs_file(const fs::path& run, const std::string& id) {
  return run / kLogKeysFolder / id / kClosedLogsName;
}

const LogStart* last_closed_start(const LogStarts& starts, const fs::path& run) {
  const auto at = std::find_if(starts.all.rbegin(), starts.all.rend(), [&](const LogStart& start) {
    std::error_code none;
    return fs::exists(closed_logs_file(run, start.key), none);
  });
  return at == starts.all.rend() ? nullptr : &*at;
}

std::string note_of_files_set_aside(const fs::path& run) {
  std::error_code none;
  const fs::path folder = run / kSetAsideFolder;
  return fs::is_directory(folder, none)
             ? fmt::format(
                   "a start found plain files in the place of encrypted ones, which "
                   "somebody had put there, and has moved them to {}; what they replaced "
                   "is lost here",
                   printable(folder.string()))
             : "";
}

std::string lack_of_closing_record(const fs::path& run) {
  const LogStarts starts = list_log_starts(run);
  if (starts.all.empty() || starts.all.back().run.empty() ||
      last_closed_start(starts, run) == &starts.all.back()) {
    return "";
  }
  return fmt::format(
      "start {} of the run has left no record of how its files ended: it still runs or was killed, "
      "or that record and the ends of files were removed",
      starts.all.back().number);
}

ClosedLogs read_closed_logs(const fs::path& run, const LogStart& start) {
  const fs::path file = closed_logs_file(run, start.key);
  ClosedLogs closed = parse_closed_logs(read_file(file, kMostClosedBytes), file.string());
  if (closed.data_key != start.key || closed.contents != contents_of(start)) {
    throw taken_from_elsewhere(file);
  }
  return closed;
}

ClosedLogs read_closed_logs(const fs::path& run, const LogStart& start, const DataKey& key) {
  ClosedLogs closed = read_closed_logs(run, start);
  if (closed.data_key != key.id() || !same_mac(closed.mac, closed.expected_mac(key))) {
    throw taken_from_elsewhere(closed_logs_file(run, start.key));
  }
  return closed;
}

std::int64_t close_logs(const fs::path& run, const LogStart& start, const DataKey& key) {
  ClosedLogs closed{key.id(), contents_of(start), {}, ""};
  for (const fs::path& path : encrypted_files(run)) {
    const std::string name = path.lexically_relative(run).generic_string();
    if (is_file_name(name)) {
      closed.files.push_back({name, end_of_last_line(path), digest_of_line(last_line_of(path))});
    }
  }
  closed.sign(key);
  write_file_durably(closed_logs_file(run, key.id()), to_text(closed));
  return std::ssize(closed.files);
}

void check_not_cut(const ClosedCheck& check, std::string_view text, const fs::path& run,
                   const fs::path& path) {
  const ClosedFile* const own = check.closed.find(path.lexically_relative(run).generic_string());
  const ClosedFile* before = nullptr;  // of the log that a later start has rotated away
  if (is_rotated_log(path)) {
    const fs::path current = current_log(path);
    before = check.closed.find(current.lexically_relative(run).generic_string());
    if (before != nullptr && !fs::exists(current)) {
      throw DataError(fmt::format("{} is missing, which start {} of the run has left beside {}",
                                  printable(current.string()), check.number,
                                  printable(path.filename().string())));
    }
  }
  const bool is_known = own != nullptr || before != nullptr;
  if (!is_known || check.first_number > check.number || begins_with_file(text, own) ||
      begins_with_file(text, before)) {
    return;
  }
  const std::int64_t bytes = (own != nullptr ? own : before)->bytes;
  throw DataError(fmt::format(
      "{}: start {} of the run left {} bytes here, and {}: {}", printable(path.string()),
      check.number, bytes,
      std::ssize(text) < bytes ? fmt::format("{} are left", text.size())
                               : std::string("they do not end with the same line any more"),
      std::ssize(text) < bytes ? "its end was cut off" : "another state of the file was put here"));
}

}  // namespace trireme
