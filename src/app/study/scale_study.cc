#include "src/app/study/scale_study.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/app/command/standard_output.h"
#include "src/app/command/version.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"
#include "src/train/run/layout.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostTraced = 10;
constexpr int kStudySchema = 1;
constexpr std::int64_t kMostStudyBytes = 1 << 20;

std::vector<ScaleRun> interleaved(const ScaleOptions& options) {
  std::vector<ScaleRun> runs;
  for (int repetition = 1; repetition <= options.repetitions; ++repetition) {
    std::vector<int> nodes = options.nodes;
    if (repetition % 2 == 0) {
      std::reverse(nodes.begin(), nodes.end());
    }
    for (const int each : nodes) {
      const std::string name = fmt::format("n{:04}-r{:02}", each, repetition);
      runs.push_back({each, repetition, std::filesystem::path(options.folder) / name});
    }
  }
  return runs;
}

RunConfig load(const ScaleOptions& options, const std::vector<std::string>& arguments) {
  return load_run_config({.file = options.config, .arguments = arguments, .environment = environ})
      .config;
}

// Removes the keys that have the same value in both.
void keep_differences(nlohmann::json& a, nlohmann::json& b) {
  const nlohmann::json all = a;
  for (const auto& [key, value] : all.items()) {
    if (b.contains(key) && b[key] == value) {
      a.erase(key);
      b.erase(key);
    }
  }
}

}  // namespace

bool ScaleRun::done() const { return RunDirectory(folder).done_step().has_value(); }

ScaleStudy::ScaleStudy(ScaleOptions options) : options_(std::move(options)) {
  std::sort(options_.nodes.begin(), options_.nodes.end());
  options_.nodes.erase(std::unique(options_.nodes.begin(), options_.nodes.end()),
                       options_.nodes.end());
  const RunConfig config = load(options_, options_.arguments);
  // By themselves, two ranks on this machine would have half as many threads each as one rank.
  sets_threads_ = options_.cluster.empty() && config.train.threads.is("auto");
  base_batch_ = config.train.global_batch;
  schedule_steps_ = config.optimizer.schedule.steps;
  model_ = std::filesystem::path(options_.config).stem();
  runs_ = interleaved(options_);
  check_runs();
  open_folder();
}

std::int64_t ScaleStudy::global_batch(int nodes) const {
  return options_.weak ? base_batch_ * nodes / options_.nodes.front() : base_batch_;
}

std::vector<std::string> ScaleStudy::arguments_of(const ScaleRun& run) const {
  std::vector<std::string> arguments = options_.arguments;
  for (const std::string& each :
       {fmt::format("run.dir={}", run.folder.string()),
        fmt::format("train.steps={}", kScaleWarmup + options_.steps),
        fmt::format("optimizer.schedule.steps={}", schedule_steps_),
        fmt::format("train.global_batch={}", global_batch(run.nodes)),
        fmt::format("run.trace={}", std::min(options_.steps, kMostTraced)),
        std::string("train.log_every=1"), std::string("train.eval_every=0"),
        std::string("checkpoint.dir="), std::string("run.name=")}) {
    arguments.push_back(each);
  }
  if (sets_threads_) {
    arguments.emplace_back("train.threads=1");
  }
  return arguments;
}

RunConfig ScaleStudy::config_of(const ScaleRun& run) const {
  return load(options_, arguments_of(run));
}

// Lists of mappings are left out: they can be written in several ways.
std::vector<ConfigEntry> ScaleStudy::given_in(const std::vector<std::string>& arguments) const {
  const LoadedConfig loaded =
      load_run_config({.file = options_.config, .arguments = arguments, .environment = environ});
  std::vector<ConfigEntry> given;
  for (const ResolvedKey& key : loaded.binder.resolved()) {
    const bool is_given =
        key.origin == "command line" || key.origin.starts_with(options_.config + ":");
    const bool is_plain =
        key.value.kind == ConfigValue::Kind::scalar || key.value.kind == ConfigValue::Kind::list;
    if (is_given && is_plain && key.key != "run.dir" && key.key != "run.name") {
      given.push_back({key.key, key.value});
    }
  }
  return given;
}

std::vector<ConfigEntry> ScaleStudy::asked_of(const ScaleRun& run) const {
  return given_in(arguments_of(run));
}

void ScaleStudy::check_runs() {
  for (const int nodes : options_.nodes) {
    if (options_.weak && base_batch_ * nodes % options_.nodes.front() != 0) {
      throw ConfigError(
          fmt::format("--weak: train.global_batch {} on {} gives no whole batch on {}", base_batch_,
                      counted(options_.nodes.front(), "node"), counted(nodes, "node")));
    }
  }
  for (const int nodes : options_.nodes) {
    const ScaleRun run{nodes, 1, std::filesystem::path(options_.folder) / "run"};
    try {
      (void)make_layout(config_of(run), nodes * options_.ranks_per_node, options_.ranks_per_node);
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("on {}: {}", counted(nodes, "node"), error.what()));
    }
  }
}

// Numbers of nodes and repetitions may be added to a study. Everything else has to stay.
void ScaleStudy::open_folder() const {
  const std::filesystem::path file = std::filesystem::path(options_.folder) / "study.json";
  const Json version = version_json();
  Json configuration = Json::object();
  for (const ConfigEntry& entry : given_in(options_.arguments)) {
    configuration[entry.key] = entry.value.to_yaml();
  }
  const Json study = {{"schema", kStudySchema},
                      {"config", std::filesystem::weakly_canonical(options_.config).string()},
                      {"arguments", options_.arguments},
                      {"configuration", configuration},
                      {"first_nodes", options_.nodes.front()},
                      {"ranks_per_node", options_.ranks_per_node},
                      {"scaling", options_.weak ? "weak" : "strong"},
                      {"steps", options_.steps},
                      {"launcher", options_.cluster.empty() ? "mpirun" : "slurm"},
                      {"version", version.at("version")},
                      {"commit", version.at("commit")}};
  if (!std::filesystem::exists(file)) {
    if (std::filesystem::exists(std::filesystem::path(options_.folder) / "config.yaml")) {
      throw ConfigError(fmt::format(
          "--dir: {} is the folder of a run, and no study: name another folder", options_.folder));
    }
    make_directories(options_.folder);
    write_file_durably(file, json_text(study) + "\n");
    return;
  }
  nlohmann::json old;
  try {
    old = parse_json(read_file(file, kMostStudyBytes));
  } catch (const DataError& error) {
    throw data_error_in(file.string(), error);
  }
  for (const auto& [key, value] : study.items()) {
    nlohmann::json before = old.is_object() ? old.value(key, nlohmann::json()) : nullptr;
    if (key == "config" && before.is_string()) {  // programs before 2026-11-28 wrote it as given
      before = std::filesystem::weakly_canonical(before.get<std::string>()).string();
    }
    if (key == "configuration" && before.is_null() && old.is_object()) {
      continue;  // those programs wrote none
    }
    nlohmann::json now = value;
    if (key == "configuration" && before.is_object()) {
      keep_differences(before, now);
    }
    if (before != now) {
      throw ConfigError(fmt::format(
          "{} holds a study with other {}: {}, and now {}. Its runs cannot be compared with new "
          "ones: choose another folder with --dir",
          options_.folder, key,
          before.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), json_line(now)));
    }
  }
}

}  // namespace trireme
