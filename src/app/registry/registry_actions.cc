#include "src/app/registry/registry_actions.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <unistd.h>

#include "io/checkpoint/store.h"
#include "io/checkpoint/verify.h"
#include "src/app/access/folder_access.h"
#include "src/app/command/standard_output.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/interchange/model_label.h"
#include "src/registry/model_files.h"
#include "src/registry/model_registry.h"
#include "src/registry/registry_index.h"
#include "src/train/saving/base_weights.h"

namespace trireme {
namespace {

RecordOrigin origin() {
  const passwd* const entry = ::getpwuid(::geteuid());
  return {utc_now(), entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name, host_name()};
}

// Throws DataError if other weights were judged than those that will be used. judged: empty in what
// an earlier program wrote.
void check_weights(const std::string& where, const std::string& judged, const std::string& used) {
  if (!judged.empty() && judged != used) {
    throw DataError(fmt::format(
        "{}: it judges other weights of the checkpoint: '{}', not '{}', as the options --ema, "
        "--quantize and --precision of `trireme eval` chose them; evaluate what will be used, or "
        "say with --weights '{}' that this is",
        where, printable(judged), printable(used), printable(judged)));
  }
}

// Reads the result of an evaluation of this version, if one is given.
EvaluationResult result_of(const RegistryOptions& options, const VersionRecord& version) {
  if (options.result.empty()) {
    return {};
  }
  if (version.kind == ModelKind::exported) {
    throw ConfigError(fmt::format(
        "--result {}: `trireme eval` judges checkpoints, and {} is an exported model, whose "
        "numbers may differ; add the checkpoint, promote it by its result, and export that one",
        printable(options.result), printable(version.path.string())));
  }
  std::int64_t step = 0;
  EvaluationResult result = read_evaluation(options.result, step);
  if (result.manifest_sha256.empty() || result.weights.empty()) {
    throw DataError(
        fmt::format("--result {}: it does not say of which weights it is, since an earlier version "
                    "wrote it: evaluate the checkpoint again",
                    printable(options.result)));
  }
  if (result.manifest_sha256 != version.sha256) {
    throw DataError(fmt::format(
        "--result {}: it is of other weights, those of step {} with the manifest sha256:{}, but {} "
        "is step {} with sha256:{}: evaluate this one",
        printable(options.result), step, result.manifest_sha256, printable(version.path.string()),
        version.step, version.sha256));
  }
  check_weights("--result " + printable(options.result), result.weights, options.weights);
  result.manifest_sha256.clear();  // which the version says
  return result;
}

// Of a checkpoint that does not hold all weights, checks that its base is that whose digest the
// manifest has, and the base's files. Throws as check_model() does.
void check_base(const VersionRecord& version, ModelCheck depth) {
  if (version.kind != ModelKind::checkpoint) {
    return;
  }
  const StepFolder step = inspect_step(version.path);
  if (!step.manifest || !needs_base(*step.manifest)) {
    return;
  }
  const StepFolder base = recorded_base(step);
  if (depth == ModelCheck::contents) {
    const std::vector<std::string> faults = verify_step(base.path, *base.manifest);
    if (!faults.empty()) {
      throw DataError(fmt::format("the base of {}: {}", printable(version.path.string()),
                                  printable(faults.front())));
    }
  }
}

void check_files(const VersionRecord& version, ModelCheck depth) {
  check_model(version, depth);
  check_base(version, depth);
}

ModelCheck depth_of(const RegistryOptions& options) {
  return options.quick ? ModelCheck::sizes : ModelCheck::contents;
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
  line("weights", record.result.weights);
}

void print_change(const ChangeRecord& change) {
  fmt::print("{} {:<10} {} {} version {}{}{}{}\n", printable(change.origin.time), change.stage,
             printable(change.origin.user), change.is_rollback ? "rolled back to" : "promoted",
             change.version, change.despite_gates ? " despite its gates" : "",
             change.reason.empty() ? "" : ": ", printable(change.reason));
}

nlohmann::ordered_json json_of(const ListedVersion& listed) {
  auto json = nlohmann::ordered_json::parse(record_text(listed.record));
  json["stages"] = listed.stages;
  return json;
}

// Throws PolicyError if the policy forbids to read the model in a folder.
void check_model_access(const Access& access, const std::filesystem::path& folder) {
  check_folder_access(access, Deed::read, folder);
  std::error_code none;
  if (!access.has_policy() || !std::filesystem::is_directory(folder, none) ||
      is_step_folder(folder) || !list_steps(folder).empty()) {
    return;
  }
  access.check({Deed::read, Thing::checkpoint, folder,
                label_of_exported_model(folder, access.classifications())});
}

// Flushes what was printed. done: what the command has changed by then, which a script has to know
// even if nothing can be printed.
void flush_after(const std::string& done) {
  try {
    flush_standard_output();
  } catch (const IoError& error) {
    throw IoError(fmt::format("{}, but it could not be printed: {}", done, error.what()));
  }
}

}  // namespace

void add_version(const RegistryOptions& options, const AccessSource& access) {
  check_registry_name("the model", options.model);
  check_model_access(access(), options.path);
  std::vector<std::string> skipped;
  VersionRecord record = describe_model(options.path, skipped);
  for (const std::string& why : skipped) {
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  if (record.kind == ModelKind::exported) {
    const auto label = label_of_exported_model(record.path, access().classifications());
    record.label = label ? label->to_string() : "";
  }
  check_base(record, ModelCheck::contents);
  record.model = options.model;
  record.note = options.note;
  record.result = result_of(options, record);
  record.origin = origin();
  const VersionRecord added = ModelRegistry::open_or_make(options.registry).add(record);
  print_version(added);
  flush_after(fmt::format("{} was added as version {}", printable(options.path), added.version));
}

void list_versions(const RegistryOptions& options, int& exit_code) {
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
  std::vector<std::string> problems = index.problems();
  const std::vector<std::string> strays =
      options.model.empty() ? registry.strays() : registry.strays(options.model);
  problems.insert(problems.end(), strays.begin(), strays.end());
  for (const std::string& problem : problems) {
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

void show_version(const RegistryOptions& options) {
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

void print_model_path(const RegistryOptions& options, const AccessSource& access) {
  const VersionRecord version = ModelRegistry::open(options.registry).find(options.model);
  check_model_access(access(), version.path);
  if (!options.unchecked) {
    check_files(version, ModelCheck::sizes);
  }
  fmt::print("{}\n", version.path.string());
}

void promote_version(const RegistryOptions& options, const AccessSource& access, int& exit_code) {
  const ModelRegistry registry = ModelRegistry::open(options.registry);
  const VersionRecord version = registry.find(options.model);
  check_model_access(access(), version.path);
  check_files(version, depth_of(options));
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
  if (options.result.empty() && version.result.gates_met) {
    check_weights("the result with which the version was added", version.result.weights,
                  options.weights);
  }
  // A result that is given now replaces the one with which the version was added.
  const std::optional<bool> met =
      options.result.empty() ? version.result.gates_met : change.result.gates_met;
  if (met == false && !options.despite_gates) {
    fmt::print(
        stderr,
        "trireme: {}: version {} stays where it is, since it has missed the gates in {}; "
        "override with --despite-gates\n",
        version.model, version.version,
        options.result.empty() ? "the result with which it was added" : printable(options.result));
    exit_code = static_cast<int>(ExitCode::below_threshold);
    return;
  }
  change.despite_gates = met == false;
  const ChangeRecord made = registry.promote(std::move(change));
  print_change(made);
  flush_after(fmt::format("version {} was promoted to {}", made.version, made.stage));
}

void roll_back_stage(const RegistryOptions& options, const AccessSource& access) {
  const ModelRegistry registry = ModelRegistry::open(options.registry);
  const std::optional<UsedVersion> last =
      version_before(versions_in_use(registry.changes(options.model), options.stage));
  if (last) {  // else roll_back() says what is missing
    const VersionRecord before = registry.version(options.model, *last);
    check_model_access(access(), before.path);
    check_files(before, depth_of(options));
  }
  ChangeRecord change;
  change.model = options.model;
  change.stage = options.stage;
  change.reason = options.note;
  change.origin = origin();
  const ChangeRecord made = registry.roll_back(std::move(change));
  print_change(made);
  flush_after(fmt::format("{} was rolled back to version {}", made.stage, made.version));
}

void check_versions(const RegistryOptions& options, const AccessSource& access, int& exit_code) {
  const ModelRegistry registry = ModelRegistry::open(options.registry);
  const std::vector<std::string> models =
      options.model.empty() ? registry.models() : std::vector<std::string>{options.model};
  std::int64_t good = 0;
  std::set<std::string> told;
  const auto fail = [&](int code) {
    exit_code = exit_code == 0 ? code : std::min(exit_code, code);
  };
  for (const std::string& model : models) {
    for (const std::int64_t number : registry.version_numbers(model)) {
      try {
        const VersionRecord version = registry.version(model, number);
        check_model_access(access(), version.path);
        check_files(version, depth_of(options));
        ++good;
      } catch (const Error& error) {
        fmt::print("{} {}: {}\n", model, number, error.what());
        fail(static_cast<int>(error.exit_code()));
      }
    }
    for (const std::string& fault : registry.faults(model)) {
      fmt::print("{}: {}\n", model, printable(fault));
      fail(static_cast<int>(ExitCode::bad_data));
      told.insert(fault);
    }
  }
  const std::vector<std::string> strays =
      options.model.empty() ? registry.strays() : std::vector<std::string>();
  for (const std::string& stray : strays) {  // such as those that belong to no model
    if (!told.contains(stray)) {
      fmt::print("{}\n", printable(stray));
      fail(static_cast<int>(ExitCode::bad_data));
    }
  }
  fmt::print("{} unchanged\n", counted(good, "version"));
}

}  // namespace trireme
