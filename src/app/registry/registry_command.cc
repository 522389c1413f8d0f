#include "src/app/registry/registry_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <unistd.h>

#include "src/app/access/folder_access.h"
#include "src/app/command/standard_output.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/registry/model_files.h"
#include "src/registry/model_registry.h"
#include "src/registry/registry_index.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

struct RegistryOptions {
  std::string registry = "registry";
  std::string model;   // a name, or a reference such as chat:3
  std::string path;    // of the model's files
  std::string stage;   // empty if not given
  std::string note;    // or the reason
  std::string result;  // file of `trireme eval -J`; empty for none
  std::vector<std::string> where;
  bool unchecked = false;
  bool json = false;
};

RecordOrigin origin() {
  const passwd* const entry = ::getpwuid(::geteuid());
  return {utc_now(), entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name, host_name()};
}

// Reads the result of an evaluation of this version, if one is given.
EvaluationResult result_of(const RegistryOptions& options, const VersionRecord& version) {
  if (options.result.empty()) {
    return {};
  }
  std::int64_t step = 0;
  EvaluationResult result = read_evaluation(options.result, step);
  if (version.step >= 0 && step != version.step) {
    throw ConfigError(fmt::format("--result {}: it is of step {}, but {} is step {}",
                                  printable(options.result), step, printable(version.path.string()),
                                  version.step));
  }
  return result;
}

void print_version(const VersionRecord& record) {
  const auto line = [](const char* name, const std::string& value) {
    if (!value.empty()) {
      fmt::print("{:<10} {}\n", name, printable(value));
    }
  };
  fmt::print("{} {}\n", record.model, record.version);
  line("path", record.path.string());
  line(record.kind == ModelKind::checkpoint ? "manifest" : "files", "sha256:" + record.sha256);
  line("step", record.step >= 0 ? std::to_string(record.step) : "");
  line("label", record.label);
  line("note", record.note);
  line("added",
       fmt::format("{} by {} on {}", record.origin.time, record.origin.user, record.origin.host));
  for (const auto& [name, value] : record.result.figures) {
    line("figure", fmt::format("{} {:g}", name, value));
  }
  if (record.result.gates_met) {
    line("gates", *record.result.gates_met ? "met" : "missed");
  }
}

void print_change(const ChangeRecord& change) {
  fmt::print("{} {:<10} {} {} version {}{}{}\n", printable(change.origin.time), change.stage,
             printable(change.origin.user), change.is_rollback ? "rolled back to" : "promoted",
             change.version, change.reason.empty() ? "" : ": ", printable(change.reason));
}

nlohmann::ordered_json json_of(const ListedVersion& listed) {
  auto json = nlohmann::ordered_json::parse(record_text(listed.record));
  json["stages"] = listed.stages;
  return json;
}

void add_version(const RegistryOptions& options, const AccessSource& access) {
  check_registry_name("the model", options.model);
  check_folder_access(access(), Deed::read, options.path);
  std::vector<std::string> skipped;
  VersionRecord record = describe_model(options.path, skipped);
  for (const std::string& why : skipped) {
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  record.model = options.model;
  record.note = options.note;
  record.result = result_of(options, record);
  record.origin = origin();
  print_version(ModelRegistry::open_or_make(options.registry).add(record));
}

void list(const RegistryOptions& options, int& exit_code) {
  RegistryQuery query{options.model, options.stage, {}};
  for (const std::string& text : options.where) {
    query.bounds.push_back(FigureBound::parse(text));
  }
  const ModelRegistry registry = ModelRegistry::open(options.registry);
  if (!options.model.empty()) {
    (void)registry.version_numbers(options.model);  // throws for an unknown model
  }
  const RegistryIndex index(registry);
  if (!index.why_in_memory().empty()) {
    fmt::print(stderr, "trireme: all records are read, since the index cannot be kept: {}\n",
               printable(index.why_in_memory()));
  }
  for (const std::string& problem : index.problems()) {
    fmt::print(stderr, "trireme: {}\n", printable(problem));
    exit_code = static_cast<int>(ExitCode::bad_data);
  }
  const std::vector<ListedVersion> versions = index.versions(query);
  if (options.json) {
    auto json = nlohmann::ordered_json::array();
    for (const ListedVersion& listed : versions) {
      json.push_back(json_of(listed));
    }
    print_json({{"schema", 1}, {"versions", json}});
    return;
  }
  std::size_t width = 5;
  std::size_t stages = 6;
  for (const ListedVersion& listed : versions) {
    width = std::max(width, listed.record.model.size());
    stages = std::max(stages, fmt::format("{}", fmt::join(listed.stages, ",")).size());
  }
  fmt::print("{:<{}} version {:<{}} {:<20} {:>8} path\n", "model", width, "stages", stages, "added",
             "step");
  for (const auto& [record, at] : versions) {
    fmt::print("{:<{}} {:>7} {:<{}} {:<20} {:>8} {}\n", record.model, width, record.version,
               fmt::format("{}", fmt::join(at, ",")), stages, printable(record.origin.time),
               record.step >= 0 ? std::to_string(record.step) : "-",
               printable(record.path.string()));
  }
}

void show(const RegistryOptions& options) {
  const ModelRegistry registry = ModelRegistry::open(options.registry);
  const VersionRecord version = registry.find(options.model);
  const std::vector<ChangeRecord> changes = registry.changes(version.model);
  if (options.json) {
    auto json = nlohmann::ordered_json::parse(record_text(version));
    json["changes"] = nlohmann::ordered_json::array();
    for (const ChangeRecord& change : changes) {
      json["changes"].push_back(nlohmann::ordered_json::parse(record_text(change)));
    }
    print_json(json);
    return;
  }
  print_version(version);
  for (const ChangeRecord& change : changes) {
    print_change(change);
  }
}

void print_path(const RegistryOptions& options, const AccessSource& access) {
  const VersionRecord version = ModelRegistry::open(options.registry).find(options.model);
  check_folder_access(access(), Deed::read, version.path);
  if (!options.unchecked) {
    check_model(version);
  }
  fmt::print("{}\n", version.path.string());
}

void promote(const RegistryOptions& options, const AccessSource& access, int& exit_code) {
  const ModelRegistry registry = ModelRegistry::open(options.registry);
  const VersionRecord version = registry.find(options.model);
  check_folder_access(access(), Deed::read, version.path);
  check_model(version);
  ChangeRecord change;
  change.model = version.model;
  change.stage = options.stage;
  change.version = version.version;
  change.reason = options.note;
  change.result = result_of(options, version);
  change.origin = origin();
  if (!options.result.empty() && !change.result.gates_met) {
    throw ConfigError(
        fmt::format("--result {}: no gates have judged it; add --gate FILE to `trireme eval`",
                    printable(options.result)));
  }
  if (change.result.gates_met == false) {
    fmt::print(stderr,
               "trireme: {}: version {} stays where it is, since the gates in {} are not "
               "met\n",
               version.model, version.version, printable(options.result));
    exit_code = static_cast<int>(ExitCode::below_threshold);
    return;
  }
  print_change(registry.promote(std::move(change)));
}

void roll_back(const RegistryOptions& options, const AccessSource& access) {
  const ModelRegistry registry = ModelRegistry::open(options.registry);
  const std::vector<std::int64_t> used =
      versions_in_use(registry.changes(options.model), options.stage);
  if (used.size() > 1) {  // else roll_back() says what is missing
    const VersionRecord before = registry.version(options.model, used[used.size() - 2]);
    check_folder_access(access(), Deed::read, before.path);
    check_model(before);
  }
  ChangeRecord change;
  change.model = options.model;
  change.stage = options.stage;
  change.reason = options.note;
  change.origin = origin();
  print_change(registry.roll_back(std::move(change)));
}

// Throws DataError if a stage goes back to a version that it has not had.
void check_changes(const std::vector<ChangeRecord>& changes) {
  for (const ChangeRecord& change : changes) {
    (void)versions_in_use(changes, change.stage);
  }
}

void check(const RegistryOptions& options, const AccessSource& access, int& exit_code) {
  const ModelRegistry registry = ModelRegistry::open(options.registry);
  const std::vector<std::string> models =
      options.model.empty() ? registry.models() : std::vector<std::string>{options.model};
  std::int64_t good = 0;
  for (const std::string& model : models) {
    for (const std::int64_t number : registry.version_numbers(model)) {
      try {
        const VersionRecord version = registry.version(model, number);
        check_folder_access(access(), Deed::read, version.path);
        check_model(version);
        ++good;
      } catch (const Error& error) {
        fmt::print("{} {}: {}\n", model, number, error.what());
        const int code = static_cast<int>(error.exit_code());
        exit_code = exit_code == 0 ? code : std::min(exit_code, code);
      }
    }
    check_changes(registry.changes(model));
  }
  fmt::print("{} unchanged\n", counted(good, "version"));
}

using SharedOptions = std::shared_ptr<RegistryOptions>;

constexpr const char* kReference =
    "NAME for the newest version, NAME:N for version N, or NAME@STAGE for the one in use there";
constexpr const char* kStage = "Such as staging or production";

// Adds a command that takes --registry.
CommandLine& add_one(CommandLine& registry, const SharedOptions& options, const char* name,
                     const char* description) {
  CommandLine& command = registry.add_command(name, description);
  command.add_option("--registry", options->registry, "The registry's folder").type_name("DIR");
  return command;
}

void add_add(CommandLine& registry, const AccessSource& access) {
  const auto options = std::make_shared<RegistryOptions>();
  CommandLine& command =
      add_one(registry, options, "add", "Add a model's files as a new version, where they lie");
  command.add_option("NAME", options->model, "The model's name").required();
  command
      .add_option("PATH", options->path,
                  "The folder of a checkpoint, of checkpoints (then the newest valid one), or of "
                  "an exported model")
      .required();
  command.add_option("--note", options->note, "What is new in it");
  command
      .add_option("--result", options->result,
                  "What `trireme eval -J FILE` has written about it; its figures are kept")
      .type_name("FILE");
  command.footer("Example:\n  trireme registry add chat runs/chat/checkpoints --note 'more law'");
  command.callback([options, access] { add_version(*options, access); });
}

void add_list(CommandLine& registry, int& exit_code) {
  const auto options = std::make_shared<RegistryOptions>();
  CommandLine& command = add_one(registry, options, "list", "List versions");
  command.add_option("NAME", options->model, "Only those of this model");
  command.add_option("--stage", options->stage, "Only those in use at this stage");
  command
      .add_option("--where", options->where,
                  "Only those with such a figure, as in 'loss<=2.1'; can be repeated")
      .type_name("CONDITION")
      .one_value_per_use();
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example:\n  trireme registry list chat --where 'tasks.law.acc>=0.7'");
  command.callback([options, &exit_code] { list(*options, exit_code); });
}

void add_show_and_path(CommandLine& registry, const AccessSource& access) {
  const auto showing = std::make_shared<RegistryOptions>();
  CommandLine& shown =
      add_one(registry, showing, "show", "Show a version, and all changes of its model");
  shown.add_option("MODEL", showing->model, kReference).required();
  shown.add_flag("--json", showing->json, "Print JSON");
  shown.footer("Example:\n  trireme registry show chat:3");
  shown.callback([showing] { show(*showing); });

  const auto options = std::make_shared<RegistryOptions>();
  CommandLine& path =
      add_one(registry, options, "path", "Print where a version's files are, for scripts");
  path.add_option("MODEL", options->model, kReference).required();
  path.add_flag("--unchecked", options->unchecked, "Do not look whether they have changed");
  path.footer(
      "Example:\n"
      "  trireme generate --checkpoint \"$(trireme registry path chat@production)\"");
  path.callback([options, access] { print_path(*options, access); });
}

void add_changes(CommandLine& registry, const AccessSource& access, int& exit_code) {
  const auto options = std::make_shared<RegistryOptions>();
  CommandLine& promotion = add_one(registry, options, "promote", "Put a version to use at a stage");
  promotion.add_option("MODEL", options->model, kReference).required();
  promotion.add_option("--stage", options->stage, kStage).required();
  promotion.add_option("--reason", options->note, "Why");
  promotion
      .add_option("--result", options->result,
                  "What `trireme eval --gate GATES -J FILE` has written about it; a version that "
                  "has missed a gate is not promoted (exit code 4)")
      .type_name("FILE");
  promotion.footer(
      "Example:\n"
      "  trireme registry promote chat:3 --stage production --result eval.json");
  promotion.callback([options, access, &exit_code] { promote(*options, access, exit_code); });

  const auto back = std::make_shared<RegistryOptions>();
  CommandLine& rollback =
      add_one(registry, back, "rollback", "Go back to the version that a stage had before");
  rollback.add_option("NAME", back->model, "The model's name").required();
  rollback.add_option("--stage", back->stage, kStage).required();
  rollback.add_option("--reason", back->note, "Why");
  rollback.footer("Example:\n  trireme registry rollback chat --stage production");
  rollback.callback([back, access] { roll_back(*back, access); });
}

void add_check(CommandLine& registry, const AccessSource& access, int& exit_code) {
  const auto options = std::make_shared<RegistryOptions>();
  CommandLine& command = add_one(registry, options, "check",
                                 "Check that the files of all versions are as they were added");
  command.add_option("NAME", options->model, "Only those of this model");
  command.footer("Example:\n  trireme registry check --registry /models/registry");
  command.callback([options, access, &exit_code] { check(*options, access, exit_code); });
}

}  // namespace

void add_registry_command(CommandLine& app, const AccessSource& access, int& exit_code) {
  CommandLine& registry =
      app.add_command("registry", "Keep the versions of models, and say which are in use");
  registry.require_command();
  registry.footer(
      "Example:\n"
      "  trireme registry list --registry /models/registry --stage production");
  add_add(registry, access);
  add_list(registry, exit_code);
  add_show_and_path(registry, access);
  add_changes(registry, access, exit_code);
  add_check(registry, access, exit_code);
}

}  // namespace trireme
