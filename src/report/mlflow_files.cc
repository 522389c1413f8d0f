#include "src/report/mlflow_files.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/base/config_tree.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostParam = 6000;  // characters that MLflow takes for a value
constexpr std::size_t kMostName = 250;    // characters that it takes for a name
constexpr double kMsPerSecond = 1000;

// Returns text as a YAML scalar in double quotes, which are those of JSON.
std::string yaml_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string id_of(const std::string& text) {
  constexpr std::size_t kDigits = 32;
  return sha256_hex(text).substr(0, kDigits);
}

// Experiments have decimal IDs, of 18 digits like those that MLflow makes up.
std::string experiment_id(const std::string& name) {
  constexpr std::uint64_t kLeast = 100'000'000'000'000'000;
  const auto hash = xxh3(name.data(), static_cast<std::int64_t>(name.size()));
  return std::to_string(kLeast + hash % (9 * kLeast));
}

std::int64_t milliseconds(double seconds) {
  constexpr double kLatest = 4e10;
  return std::isfinite(seconds) ? std::llround(std::clamp(seconds, 0.0, kLatest) * kMsPerSecond)
                                : 0;
}

// Returns when the run began, in milliseconds. It has a step with a time.
std::int64_t began_at(const RunFolder& run) {
  const double first = run.metrics.of("time").front();
  return milliseconds(run.journal_began > 0  ? run.journal_began
                      : std::isfinite(first) ? first
                                             : run.metrics.last("time"));
}

int status_of(const std::string& state) {
  return state == "finished"                           ? 3
         : state == "running" || state == "starting"   ? 1
         : state == "failed" || state == "interrupted" ? 4
                                                       : 5;  // killed: it has saved and stopped
}

// Refuses to follow a link out of the store.
void make_folder(const fs::path& path) {
  std::error_code code;
  if (fs::is_symlink(path, code)) {
    throw PolicyError(
        fmt::format("{} is a symbolic link: name a store without links", path.string()));
  }
  make_directories(path);
}

// Returns the experiment's ID, after writing its files unless they exist.
std::string make_experiment(const MlflowExport& what, std::int64_t time) {
  const std::string id = experiment_id(what.experiment);
  const fs::path folder = what.folder / id;
  make_folder(folder);
  std::error_code code;
  if (!fs::exists(folder / "meta.yaml", code)) {
    write_file_durably(folder / "meta.yaml",
                       fmt::format("artifact_location: {}\ncreation_time: {}\nexperiment_id: '{}'\n"
                                   "last_update_time: {}\nlifecycle_stage: active\nname: {}\n",
                                   yaml_text("file://" + fs::absolute(folder).string()), time, id,
                                   time, yaml_text(what.experiment)));
  }
  return id;
}

// Returns whether MLflow takes the name, and the name stays below the folder of metrics. Names of
// sources and validation sets come from the run's configuration and logs.
bool is_metric_name(std::string_view name) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
           c == ' ' || c == '/';
  };
  const fs::path path(name);
  return !name.empty() && name.size() <= kMostName &&
         std::all_of(name.begin(), name.end(), is_plain) && path.is_relative() &&
         path.lexically_normal().native() == name &&
         std::all_of(path.begin(), path.end(),
                     [](const fs::path& part) { return !part.empty() && part.native()[0] != '.'; });
}

// Returns whether another metric has a name that would have to be a folder and a file at once, as
// "a" beside "a/b".
bool is_below_another(std::string_view name, const RunColumns& metrics) {
  for (auto slash = name.find('/'); slash != std::string_view::npos;
       slash = name.find('/', slash + 1)) {
    if (metrics.fields.contains(name.substr(0, slash))) {
      return true;
    }
  }
  return false;
}

// Makes the folders of "sources/web/loss" below `folder`.
void make_folders_of(const std::string& name, fs::path folder) {
  for (const fs::path& part : fs::path(name).parent_path()) {
    folder /= part;
    make_folder(folder);
  }
}

// Returns the names that were left out.
std::vector<std::string> write_metrics(const RunColumns& metrics, const fs::path& folder) {
  make_folder(folder);
  std::vector<std::string> left_out;
  const std::vector<double>& time = metrics.of("time");
  for (const auto& [name, values] : metrics.fields) {
    if (name == "time") {
      continue;
    }
    if (!is_metric_name(name) || is_below_another(name, metrics)) {
      left_out.push_back(name);
      continue;
    }
    std::string lines;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i]) && std::isfinite(time[i])) {
        lines += fmt::format("{} {} {:.0f}\n", milliseconds(time[i]), values[i], metrics.step[i]);
      }
    }
    make_folders_of(name, folder);
    write_file_durably(folder / name, lines);
  }
  return left_out;
}

// Writes the values of the configuration. A key has only letters, digits, "_", "-" and ".".
void write_params(const std::vector<ConfigEntry>& settings, const fs::path& folder) {
  make_folder(folder);
  for (const ConfigEntry& entry : settings) {
    if (entry.key.size() <= kMostName && entry.key[0] != '.') {
      const bool is_scalar = entry.value.kind == ConfigValue::Kind::scalar;
      const std::string value = is_scalar ? entry.value.items.front() : entry.value.to_yaml();
      write_file_durably(folder / entry.key, value.substr(0, kMostParam));
    }
  }
}

}  // namespace

fs::path mlflow_run_folder(const RunFolder& run, const MlflowExport& what) {
  if (run.metrics_error) {
    std::rethrow_exception(run.metrics_error);
  }
  if (!std::isfinite(run.metrics.last("time"))) {
    throw DataError(
        fmt::format("{}: metrics.jsonl has no step with a time, so there is nothing to "
                    "export",
                    run.path.string()));
  }
  make_folder(what.folder);
  const std::string experiment = make_experiment(what, began_at(run));
  return what.folder / experiment / id_of(fs::absolute(run.path).lexically_normal().string());
}

void move_mlflow_run(const MlflowExport& what, const fs::path& folder) {
  const auto is_there = [](const fs::path& path) {
    std::error_code code;
    return fs::exists(fs::symlink_status(path, code));
  };
  std::error_code code;
  for (fs::directory_iterator at(what.folder, code), end; !code && at != end; at.increment(code)) {
    const fs::path former = at->path() / folder.filename();
    const bool is_experiment =
        !at->is_symlink() && at->path().filename().native().front() != '.' && is_there(former);
    if (!is_experiment || at->path().filename() == folder.parent_path().filename()) {
      continue;
    }
    if (is_there(folder)) {
      throw ConfigError(fmt::format(
          "{} and {} are the same run, which MLflow cannot tell apart: remove one of them",
          former.string(), folder.string()));
    }
    make_folder(former);  // refuses a link
    rename_durably(former, folder);
  }
}

std::vector<std::string> write_mlflow_run(const RunFolder& run, const MlflowExport& what,
                                          const fs::path& folder, const fs::path& draft) {
  make_folder(draft);
  make_folder(draft / "artifacts");
  make_folder(draft / "tags");
  const auto write_tag = [&](const std::string& name, std::string_view value) {
    write_file_durably(draft / "tags" / name, value);
  };
  const std::vector<std::string> left_out = write_metrics(run.metrics, draft / "metrics");
  if (!left_out.empty()) {
    write_tag("trireme.metrics_missing", fmt::format("{}", fmt::join(left_out, "\n")));
  }
  write_params(run.settings, draft / "params");
  if (!run.config_error.empty()) {
    write_tag("trireme.params_missing", run.config_error);
  }
  write_tag("mlflow.runName", run.name);
  write_tag("mlflow.user", what.user);
  write_tag("mlflow.source.type", "LOCAL");
  write_tag("trireme.state", what.state);
  write_tag("trireme.folder", fs::absolute(run.path).string());
  for (const auto& [name, value] : what.tags) {
    write_tag(name, value);
  }
  // Last, because MLflow takes a folder with this file for a run.
  const int status = status_of(what.state);
  const std::string end =
      status == 1 ? "null" : std::to_string(milliseconds(run.metrics.last("time")));
  write_file_durably(
      draft / "meta.yaml",
      fmt::format("artifact_uri: {0}\nend_time: {1}\nentry_point_name: ''\nexperiment_id: '{2}'\n"
                  "lifecycle_stage: active\nrun_id: {3}\nrun_name: {4}\nrun_uuid: {3}\n"
                  "source_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: {5}\n"
                  "status: {6}\ntags: []\nuser_id: {7}\n",
                  yaml_text("file://" + fs::absolute(folder / "artifacts").string()), end,
                  folder.parent_path().filename().string(), yaml_text(folder.filename().string()),
                  yaml_text(run.name), began_at(run), status, yaml_text(what.user)));
  return left_out;
}

}  // namespace trireme
