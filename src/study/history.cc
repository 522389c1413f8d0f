#include "src/study/history.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "benchmarks/statistics.h"
#include "src/base/data_error_in.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/lock_within.h"
#include "src/base/median.h"
#include "src/study/change_points.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr int kHistorySchema = 1;

double positive_field(const json& line, const char* name) {
  const json& value = field(line, name);
  if (!value.is_number() || !(value.get<double>() > 0)) {
    throw DataError(fmt::format("field '{}' is not a number above 0", name));
  }
  return checked_sample(name, value.get<double>());
}

HistorySeries series_of(const json& line) {
  HistorySeries series;
  if (field(line, "schema") != kHistorySchema) {
    throw DataError(fmt::format("it has another version than {}", kHistorySchema));
  }
  series.command = text_field(line, "command");
  series.name = text_field(line, "name");
  series.samples = text_field(line, "samples");
  series.host = text_field(line, "host");
  series.machine = text_field(line, "machine");
  for (const auto& [key, value] : object_field(line, "params").items()) {
    if (!value.is_string()) {
      throw DataError(fmt::format("parameter '{}' is not a text", key));
    }
    series.params[key] = value.get<std::string>();
  }
  series.entries.push_back({positive_field(line, "time"), positive_field(line, "median"),
                            positive_field(line, "low"), positive_field(line, "high"),
                            text_field(line, "commit")});
  return series;
}

// Returns whether a crash can have left this text of a line: the beginning of one of ours, or zeros
// where its data did not reach the disk.
bool may_be_torn(std::string_view text) {
  constexpr std::string_view kBegin = R"({"schema":)";
  return text.empty() || text.front() == '\0' || text.starts_with(kBegin) ||
         kBegin.starts_with(text);
}

// Returns the whole line, or null if it is torn.
json parse_line(std::string_view text, std::int64_t number, const std::string& origin) {
  if (!json::accept(text)) {
    if (!may_be_torn(text)) {
      throw DataError(
          fmt::format("{}:{}: no line of a history: is this another file?", origin, number));
    }
    return nullptr;
  }
  try {
    return parse_json(text);
  } catch (const DataError& error) {
    throw data_error_in(fmt::format("{}:{}", origin, number), error);
  }
}

void add_line(HistorySeries line, History& history,
              std::map<std::string, std::size_t>& index_of_key) {
  const auto [found, is_new] = index_of_key.try_emplace(line.key(), history.series.size());
  if (is_new) {
    history.series.push_back(std::move(line));
  } else {
    history.series[found->second].entries.push_back(line.entries.front());
  }
}

std::string value_or(const std::map<std::string, std::string>& all, const char* key,
                     const char* otherwise) {
  const auto found = all.find(key);
  return found == all.end() ? otherwise : found->second;
}

std::string machine_of(const MeasuredResult& result) {
  std::string text;
  for (const auto& [key, value] : result.conditions) {
    text += key + "=" + value + "\n";
  }
  if (const std::string gpus = result.gpus.value_or(""); !gpus.empty()) {
    text += "host.gpus=" + gpus + "\n";
  }
  return sha256_hex(text).substr(0, 16);
}

// Returns an entry for the samples, or nothing if they cannot be judged.
std::optional<HistorySeries> series_to_add(const MeasuredResult& result, const ResultRow& row,
                                           const SampleSet& samples) {
  const bool positive = std::all_of(samples.values.begin(), samples.values.end(),
                                    [](double value) { return value > 0; });
  if (samples.reference || samples.values.empty() || !positive || result.time <= 0 ||
      better_of(samples.name) == Better::unknown) {
    return std::nullopt;
  }
  const MedianInterval interval = median_interval(samples.values);
  HistorySeries series{result.command, row.name, samples.name, {}, machine_of(result),
                       row.params,     {}};
  // The nodes of a job change from day to day; a single node has a history of its own.
  const bool several = std::stoi("0" + value_or(result.conditions, "hosts of ranks", "0")) > 1;
  // Programs before 2026-11-28 did not write how Slurm names the host.
  const std::string own_name =
      value_or(result.circumstances, "host.name",
               value_or(result.circumstances, "host of rank 0", "").c_str());
  series.host = several ? "several" : value_or(result.circumstances, "host.node", own_name.c_str());
  series.entries.push_back({result.time, interval.median, interval.low, interval.high,
                            value_or(result.circumstances, "program.commit", "")});
  return series;
}

std::string line_of(const HistorySeries& series, std::size_t count) {
  const HistoryEntry& entry = series.entries.front();
  const nlohmann::ordered_json line = {
      {"schema", kHistorySchema}, {"time", entry.time},      {"command", series.command},
      {"name", series.name},      {"params", series.params}, {"samples", series.samples},
      {"count", count},           {"median", entry.median},  {"low", entry.low},
      {"high", entry.high},       {"host", series.host},     {"machine", series.machine},
      {"commit", entry.commit}};
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// Waits for other writers.
void wait_for_lock(const File& file) {
  constexpr std::chrono::seconds kLongestWait{10};
  const int code = lock_within(file.fd(), kLongestWait, file.path());
  if (code != 0) {
    throw_errno(code, "lock", file.path());
  }
}

// Opens and locks the file, which is made if it does not exist. A process that has made the file
// and could not write to it may have removed it meanwhile.
File open_locked(const std::filesystem::path& path) {
  for (;;) {
    File file = File::open_to_append(path);
    wait_for_lock(file);
    struct stat entry {};
    if (::fstat(file.fd(), &entry) != 0 || entry.st_nlink > 0) {
      return file;
    }
  }
}

// Writes and syncs the lines. If that fails, for example because the disk is full, the file becomes
// as long as before; one that did not exist before this command is removed.
void append(std::string_view lines, std::int64_t bytes_before, bool is_new, File& file) {
  try {
    file.write(lines.data(), std::ssize(lines));
    file.sync();
  } catch (const Error&) {
    // If this fails, too, a torn line is left, which readers ignore.
    [[maybe_unused]] const int code =
        is_new ? ::unlink(file.path().c_str()) : ::ftruncate(file.fd(), bytes_before);
    throw;
  }
}

// Returns what tells entries apart, in the form in which their lines are read back.
std::string identity(const HistorySeries& series, double time) {
  return fmt::format("{}\n{}", series.key(), time);
}

std::string identity_as_read(const std::string& line, const std::string& origin) {
  try {
    const HistorySeries series = series_of(json::parse(line));
    return identity(series, series.entries.front().time);
  } catch (const DataError& error) {
    throw data_error_in(origin, error);
  }
}

std::set<std::string> identities(const History& history) {
  std::set<std::string> all;
  for (const HistorySeries& series : history.series) {
    for (const HistoryEntry& entry : series.entries) {
      all.insert(identity(series, entry.time));
    }
  }
  return all;
}

}  // namespace

std::string HistorySeries::key() const {
  std::string key = fmt::format("{}\n{}\n{}\n{}\n{}", command, name, samples, host, machine);
  for (const auto& [param, value] : params) {
    key += fmt::format("\n{}={}", param, value);
  }
  return key;
}

History parse_history(std::string_view text, const std::string& origin) {
  History history;
  std::map<std::string, std::size_t> index_of_key;
  std::int64_t lines_of_zeros = 0;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line_text = text.substr(0, end);
    const json line = parse_line(line_text, number, origin);
    if (line.is_null()) {
      history.torn_lines += line_text.empty() ? 0 : 1;
      lines_of_zeros += line_text.starts_with('\0') ? 1 : 0;
    } else {
      try {
        add_line(series_of(line), history, index_of_key);
      } catch (const DataError& error) {
        throw data_error_in(fmt::format("{}:{}: no line of a history", origin, number), error);
      }
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  if (history.series.empty() && lines_of_zeros > 0 && lines_of_zeros == history.torn_lines) {
    throw DataError(fmt::format(
        "{}: zeros instead of a history: is this another file? If it is not, remove it", origin));
  }
  for (HistorySeries& series : history.series) {
    std::stable_sort(series.entries.begin(), series.entries.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
  }
  return history;
}

History read_history(const std::filesystem::path& path) {
  return std::filesystem::exists(path)
             ? parse_history(read_file(path, kMostResultBytes), path.string())
             : History{};
}

Added add_to_history(const std::filesystem::path& path, const MeasuredResult& result) {
  std::vector<std::pair<std::string, std::string>> found;  // lines and their identities
  for (const ResultRow& row : result.rows) {
    for (const SampleSet& samples : row.samples) {
      if (const auto series = series_to_add(result, row, samples)) {
        const std::string line = line_of(*series, samples.values.size());
        found.emplace_back(line, identity_as_read(line, result.origin));
      }
    }
  }
  Added added;
  if (found.empty()) {
    return added;  // without making the file
  }
  const bool existed = std::filesystem::exists(path);
  File file = open_locked(path);
  const std::string before = read_file(path, kMostResultBytes);
  std::set<std::string> known = identities(parse_history(before, path.string()));
  std::string lines = before.empty() || before.back() == '\n' ? "" : "\n";
  for (const auto& [line, identity] : found) {
    const bool is_new = known.insert(identity).second;
    lines += is_new ? line : "";
    ++(is_new ? added.lines : added.present);
  }
  if (added.lines > 0) {
    append(lines, std::ssize(before), !existed && before.empty(), file);
  }
  file.close();
  return added;
}

std::vector<Level> levels_of(const HistorySeries& series, double threshold) {
  std::vector<double> logarithms;
  for (const HistoryEntry& entry : series.entries) {
    logarithms.push_back(std::log(entry.median));
  }
  std::vector<std::size_t> begins = change_points(logarithms);
  begins.insert(begins.begin(), 0);
  std::vector<Level> levels;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    Level level{begins[i], i + 1 < begins.size() ? begins[i + 1] : series.entries.size(), 0, 0,
                false};
    const auto median_from = [&](std::size_t begin) {
      return std::exp(median({logarithms.begin() + static_cast<std::ptrdiff_t>(begin),
                              logarithms.begin() + static_cast<std::ptrdiff_t>(level.end)}));
    };
    level.median = median_from(level.begin);
    if (!levels.empty()) {
      level.change = level.median / levels.back().median - 1;
      level.slower = (better_of(series.samples) == Better::lower) == (level.change > 0);
      if (std::abs(level.change) < threshold) {
        levels.back().end = level.end;
        continue;
      }
    }
    levels.push_back(level);
  }
  return levels;
}

}  // namespace trireme
