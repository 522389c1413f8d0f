#include "src/report/run_folder.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "slurm/journal/journal.h"
#include "src/base/config_tree.h"
#include "src/base/contained_file.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/json_number.h"
#include "src/base/log.h"
#include "src/base/units.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostFileBytes = std::int64_t{4} << 30;
constexpr std::int64_t kMostSmallFileBytes = 1 << 20;
constexpr std::size_t kMostWarnings = 200;

bool is_there(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

// Returns the value of run.name in a configuration, or "" if there is none.
std::string name_in(const std::vector<ConfigEntry>& settings) {
  for (const ConfigEntry& entry : settings) {
    if (entry.key == "run.name" && entry.value.kind == ConfigValue::Kind::scalar) {
      return entry.value.items.front();
    }
  }
  return "";
}

// Reads the run's files one by one into a RunFolder.
class FolderReader {
 public:
  FolderReader(RunFolder& run, const TextReader& reader) : run_(run), reader_(reader) {}

  // Calls `use` with the file's text. A file that is missing or unusable becomes a remark.
  template <class Use>
  void read(const char* name, const char* if_missing, std::int64_t most_bytes, Use use) {
    const auto contained = [&](const fs::path& path, std::int64_t most) {
      return read_contained_file(path, run_.path, most);
    };
    read_by(contained, name, if_missing, most_bytes, use);
  }

  // Does the same with a text that read_text() returns.
  template <class ReadText, class Use>
  void read_by(ReadText read_text, const char* name, const char* if_missing,
               std::int64_t most_bytes, Use use) {
    const fs::path path = run_.path / name;
    if (!is_there(path)) {
      if (if_missing[0] != '\0') {
        run_.remarks.push_back(fmt::format("There is no {}: {}.", name, if_missing));
      }
      return;
    }
    try {
      use(read_text(path, most_bytes));
    } catch (const Error& error) {
      run_.remarks.push_back(fmt::format("{} cannot be used: {}.", name, error.what()));
    }
  }

  void read_metrics() {
    const auto decrypted = [&](const fs::path& path, std::int64_t most) {
      try {
        return reader_.read(path, most);
      } catch (const Error&) {
        run_.metrics_error = std::current_exception();
        throw;
      }
    };
    read_by(
        decrypted, "metrics.jsonl",
        "the run has not logged a step yet, or the folder is not complete", kMostFileBytes,
        [&](const std::string& text) {
          run_.metrics = parse_columns(text);
          if (run_.metrics.empty() && !text.empty()) {
            run_.remarks.push_back(fmt::format(
                "metrics.jsonl cannot be used: none of its {} is a logged step{}.",
                counted(std::ssize(text), "byte"),
                text.front() == '\0' ? "; it begins with bytes of zero, which a power cut can leave"
                                     : ""));
            return;
          }
          note_damage(run_.metrics.damaged, "metrics.jsonl");
          if (run_.metrics.out_of_order > 0) {
            run_.remarks.push_back(
                fmt::format("metrics.jsonl: {} left out so that the steps of the others ascend.",
                            counted(run_.metrics.out_of_order, "line")));
          }
          if (run_.metrics.impossible > 0) {
            run_.remarks.push_back(fmt::format(
                "metrics.jsonl: {} left out, because amounts are not negative or that large.",
                counted(run_.metrics.impossible, "number")));
          }
        });
  }

  void note_damage(const DamagedLines& lines, const char* name) {
    if (lines.count > 0) {
      run_.remarks.push_back(fmt::format("{}: {} left out.", name, lines.to_text()));
    }
    if (lines.last_is_unfinished) {
      run_.remarks.push_back(fmt::format(
          "{}: the last line is incomplete: it was being written, or a crash has torn it.", name));
    }
  }

  // Comes after read_ends().
  void read_journal(bool is_running) {
    run_.journal =
        is_there(run_.path / "journal.jsonl") ? JournalFile::unusable : JournalFile::none;
    read("journal.jsonl", "", kMostFileBytes, [&](const std::string& text) {
      const auto events = parse_journal(text, run_.damaged_journal);
      note_damage(run_.damaged_journal, "journal.jsonl");
      run_.journal = events.empty() ? JournalFile::empty : JournalFile::used;
      if (events.empty()) {
        return;
      }
      run_.account = account_of(events, is_running     ? RunStanding::running
                                        : run_.is_done ? RunStanding::done
                                                       : RunStanding::ended);
      run_.account->is_incomplete = run_.account->is_incomplete || run_.damaged_journal.count > 0;
      run_.journal_began = events.front().at("time").get<double>();
      note_attempts(events);
    });
  }

  void read_ends() {
    run_.is_done = is_there(run_.path / "DONE");
    read("exit_reason.json", "", kMostSmallFileBytes, [&](const std::string& text) {
      const nlohmann::json reason = parse_json(text);
      run_.exit_reason = fmt::format("code {}: {}", count_field(reason, "code", 0, 255),
                                     text_field(reason, "message"));
    });
  }

  void read_forecast() {
    read("prediction.json", "", kMostSmallFileBytes, [&](const std::string& text) {
      const nlohmann::json json = parse_json(text);
      RunForecast forecast;
      forecast.cluster = text_field(json, "cluster");
      forecast.residual_percent = number_field(json, "residual_percent");
      const nlohmann::json& measured = object_field(json, "measured");
      for (const auto& [part, value] : measured.items()) {
        forecast.parts.push_back(part);
        forecast.measured.push_back(number_field(measured, part.c_str()));
        forecast.predicted.push_back(number_field(object_field(json, "predicted"), part.c_str()));
      }
      forecast.predicted_memory = number_field(json, "predicted_memory_bytes");
      forecast.measured_memory = number_field(json, "memory_bytes");
      for (const nlohmann::json& doubt : array_field(json, "doubts")) {
        if (!doubt.is_string()) {
          throw DataError("'doubts' holds something else than texts");
        }
        forecast.doubts.push_back(doubt.get<std::string>());
      }
      run_.forecast = std::move(forecast);
    });
  }

  void read_config() {
    read("config.yaml", "the configuration is not known", kMostSmallFileBytes,
         [&](const std::string& text) { take_config(text); });
  }

  void read_traces() {
    if (!is_there(run_.path / "trace")) {
      return;
    }
    try {
      run_.trace = summarize(trireme::read_traces(run_.path, reader_));
    } catch (const Error& error) {
      run_.remarks.push_back(fmt::format("The trace cannot be used: {}.", error.what()));
    }
  }

  void read_logs() {
    for (const fs::path& path :
         {older_log_file(run_.path / "logs", 0), log_file(run_.path / "logs", 0)}) {
      if (!is_there(path)) {
        continue;
      }
      try {
        note_damage(read_log(reader_.read(path, kMostFileBytes)),
                    ("logs/" + path.filename().string()).c_str());
      } catch (const Error& error) {
        run_.remarks.push_back(fmt::format("A log cannot be used: {}.", error.what()));
      }
    }
    run_.restarts.assign(restarts_.begin(), restarts_.end());
    if (run_.account && run_.restarts_in_log() >= std::ssize(run_.account->attempts)) {
      run_.account->is_incomplete = true;  // each of them is an attempt after the first
    }
  }

 private:
  void take_config(const std::string& text) {
    run_.config = text;
    try {
      run_.settings = parse_config(text, "config.yaml");
      run_.name = name_in(run_.settings);
    } catch (const ConfigError& error) {
      run_.config_error = error.what();
      run_.remarks.push_back(fmt::format("config.yaml is damaged: {}. Its text is shown as it is.",
                                         run_.config_error));
    }
  }

  void note_attempts(const std::vector<nlohmann::json>& events) {
    for (const nlohmann::json& event : events) {
      const std::string& name = event.at("event").get_ref<const std::string&>();
      const double time = event.at("time").get<double>();
      if (name == "launch") {
        run_.attempts.push_back({time, std::nullopt});
      } else if (name == "attempt_end" && !run_.attempts.empty()) {
        run_.attempts.back().ended = time;
      }
    }
    if (run_.attempts.size() != run_.account->attempts.size()) {
      run_.attempts.clear();  // events are missing, so that it is not known which belongs to which
      run_.remarks.emplace_back(
          "journal.jsonl lacks events, so there is no timeline of the attempts.");
    }
  }

  // Parses only lines with events of interest: a log of many steps is large. The others have at
  // least to begin like a line of a log.
  DamagedLines read_log(std::string_view text) {
    constexpr std::string_view kMark = "\"event\":\"";
    return use_lines(text, [&](std::string_view line) {
      const std::size_t at = line.find(kMark);
      if (at == std::string_view::npos || line.substr(at + kMark.size()).starts_with("step\"")) {
        return line.starts_with('{');
      }
      const nlohmann::json event = parse_json_line(line);
      const bool is_event =
          event.is_object() && event.contains("event") && event["event"].is_string();
      if (is_event) {
        take(event["event"].get<std::string>(), event);
      }
      return is_event;
    });
  }

  void take(const std::string& name, const nlohmann::json& event) {
    const auto number = [&](const char* key) {
      const auto found = event.find(key);
      return found != event.end() && found->is_number() ? found->get<double>() : std::nan("");
    };
    const double step = number("step");
    if (name == "resumed" && is_measured(step)) {
      restarts_.insert(step);
    } else if (name == "memory_measured") {
      take_memory(event);
    } else if (name == "build" || name == "start" || name == "rank" || name == "layout" ||
               name == "device") {
      take_facts(event);
    } else if ((name == "straggler" || name == "stands_out") &&
               run_.warnings.size() < kMostWarnings) {
      const nlohmann::json host_field = event.value("host", nlohmann::json());
      const std::string host = host_field.is_string() ? host_field.get<std::string>() : "a host";
      run_.warnings.push_back(
          {number("time"),
           name == "straggler"
               ? fmt::format("step {:.0f}: rank {:.0f} on {} computed {:.2f} times "
                             "as long as its peers",
                             step, number("rank"), host, number("of_peers"))
               : fmt::format("step {:.0f}: the loss or the gradient stood out", step)});
    }
  }

  // Later starts replace what earlier ones said.
  void take_facts(const nlohmann::json& event) {
    static const std::set<std::string> kAbout = {"time", "level", "rank", "event", "pid"};
    for (const auto& [key, value] : event.items()) {
      if (kAbout.contains(key) || value.is_structured()) {
        continue;
      }
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      const auto known =
          std::find_if(run_.facts.begin(), run_.facts.end(),
                       [&, name = key](const auto& fact) { return fact.first == name; });
      if (known == run_.facts.end()) {
        run_.facts.emplace_back(key, text);
      } else {
        known->second = text;
      }
    }
  }

  void take_memory(const nlohmann::json& event) {
    const auto ranks = event.find("ranks");
    if (ranks == event.end() || !ranks->is_array() || ranks->empty()) {
      return;
    }
    RankMemory memory;
    for (const nlohmann::json& rank : *ranks) {
      std::vector<double> bytes;
      if (!rank.is_object()) {
        return;
      }
      for (const auto& [name, value] : rank.items()) {
        if (!value.is_number() || name == "total") {
          continue;
        }
        if (!is_measured(value.get<double>())) {
          return;
        }
        if (memory.bytes.empty()) {
          memory.parts.push_back(name);
        }
        bytes.push_back(value.get<double>());
      }
      if (bytes.size() != memory.parts.size()) {
        return;
      }
      memory.bytes.push_back(std::move(bytes));
    }
    run_.memory = std::move(memory);
  }

  RunFolder& run_;
  const TextReader& reader_;
  std::set<double> restarts_;
};

}  // namespace

std::int64_t RunFolder::restarts_in_log() const {
  return std::count_if(restarts.begin(), restarts.end(), [&](double step) {
    return !metrics.empty() && metrics.step.front() <= step;
  });
}

bool is_run_folder(const fs::path& path) {
  return is_there(path / "metrics.jsonl") || is_there(path / "config.yaml") ||
         is_there(path / "journal.jsonl");
}

RunFolder read_run_folder(const fs::path& path, bool is_running, const TextReader& reader) {
  RunFolder run;
  run.path = path;
  FolderReader files(run, reader);
  files.read_config();
  files.read_metrics();
  files.read_ends();
  files.read_journal(is_running);
  files.read_forecast();
  files.read_traces();
  files.read_logs();
  if (run.name.empty()) {
    const fs::path full = fs::absolute(path).lexically_normal();
    run.name = (full.has_filename() ? full : full.parent_path()).filename().string();
  }
  return run;
}

void warn_of_damaged_lines(const RunFolder& run) {
  warn_of(run.metrics.damaged, run.path / "metrics.jsonl");
  warn_of(run.damaged_journal, run.path / "journal.jsonl");
}

}  // namespace trireme
