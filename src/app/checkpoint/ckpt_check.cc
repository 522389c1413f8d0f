#include <algorithm>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/load/logical_digest.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/verify.h"
#include "mpi/self_communicator.h"
#include "src/app/access/folder_access.h"
#include "src/app/checkpoint/ckpt_subcommands.h"
#include "src/app/command/standard_output.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/fingerprint.h"
#include "src/train/run/model_fingerprint.h"
#include "src/train/saving/stored_count.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Holds the faults that verify found, and its exit code.
struct Checked {
  std::vector<std::string> faults;  // one line each
  ExitCode code = ExitCode::ok;
};

// Throws DataError if the stored weights are not those of the model that the configuration
// describes. A checkpoint of another program may describe none.
void check_model(const Manifest& manifest) {
  const nlohmann::json& config = *manifest.meta.config;
  if (!config.contains("model.family")) {
    return;
  }
  const ModelConfig model = model_from_fingerprint(config);
  (void)trained_precision(config);
  check_stored_count(manifest, model);
  check_stored_weights(manifest, model);
}

// Returns a line if a manifest that training or an import wrote contradicts itself.
std::vector<std::string> contradictions(const StepFolder& step) {
  const CheckpointMeta& meta = step.manifest->meta;
  try {
    check_model(*step.manifest);
    if (meta.extra->contains("counters")) {
      (void)counters_of(meta);
    }
    return {};
  } catch (const DataError& error) {
    return {fmt::format("{}: {}", (step.path / kManifestName).string(), printable(error.what()))};
  }
}

// Reports a step that may not be read like a damaged one, so that the others are still checked.
Checked check_step(StepFolder& step, StepKeys* keys) {
  std::vector<std::string> faults = {step.problem};
  try {
    check_readable(step);
    if (step.manifest && keys != nullptr) {
      const std::string damage = keys->unlock(*step.manifest, step.path);
      if (!damage.empty()) {
        return {{damage}, ExitCode::bad_data};
      }
    }
  } catch (const PolicyError& e) {
    return {{e.what()}, e.exit_code()};
  }
  if (step.manifest) {
    faults = contradictions(step);
    const std::vector<std::string> damage = verify_step(step.path, *step.manifest);
    faults.insert(faults.end(), damage.begin(), damage.end());
  }
  const ExitCode code = faults.empty() ? ExitCode::ok : ExitCode::bad_data;
  return {std::move(faults), code};
}

void print_faults(const StepFolder& step, const Checked& checked) {
  const auto& [faults, code] = checked;
  for (const std::string& line : faults) {
    // What may not be read, or not be opened with the given keys, may be intact.
    fmt::print("{} {}\n", code == ExitCode::refused ? "REFUSED" : "BAD", printable(line));
  }
  if (faults.empty()) {
    const Manifest& manifest = *step.manifest;
    fmt::print("ok  {}: all digests match, {} in {}{}\n", printable(step.path.string()),
               format_bytes(manifest.bytes()), counted(manifest.shards.size(), "shard"),
               manifest.data_key.empty() ? ""
               : manifest.key == nullptr ? "; encrypted, and no key was given to open it"
                                         : "; encrypted, and every block opens");
  }
}

ordered_json to_json(const StepFolder& step, const std::vector<std::string>& faults) {
  ordered_json object = {
      {"path", step.path.string()}, {"step", step.step}, {"valid", faults.empty()}};
  if (step.manifest) {
    object["bytes"] = step.manifest->bytes();
    object["shards"] = step.manifest->shards.size();
    object["encrypted"] = !step.manifest->data_key.empty();
    object["opened"] = step.manifest->key != nullptr;
  }
  object["damage"] = faults;
  return object;
}

void print_json_of(const ordered_json& checked, const std::vector<std::string>& skipped,
                   ExitCode code) {
  ordered_json json = {{"schema", 1}, {"valid", code == ExitCode::ok}, {"checkpoints", checked}};
  if (!skipped.empty()) {
    json["skipped"] = skipped;
  }
  print_json(json);
}

void verify(const CkptOptions& options, const Access& access, int& exit_code) {
  std::vector<std::string> skipped;  // steps that a resume would pass over
  std::vector<StepFolder> steps =
      options.all ? all_steps(options) : std::vector{find_step(options.folder, skipped)};
  if (!options.all) {
    check_readable(steps.front());
  }
  for (const StepFolder& step : steps) {
    if (step.manifest) {
      check_access(access, Deed::read, step);
    }
  }
  SelfCommunicator self;
  const KeyOptions given = options.keys.options();
  const auto keys = given.uris.empty() ? nullptr : std::make_unique<StepKeys>(self, given);
  ordered_json checked = ordered_json::array();
  ExitCode code = skipped.empty() ? ExitCode::ok : ExitCode::bad_data;
  for (const std::string& line : skipped) {
    fmt::print(options.json ? stderr : stdout, "BAD {}\n", printable(line));
  }
  for (StepFolder& step : steps) {
    const Checked found = check_step(step, keys.get());
    code = std::max(code, found.code);
    if (options.json) {
      checked.push_back(to_json(step, found.faults));
    } else {
      print_faults(step, found);
    }
  }
  if (options.json) {
    print_json_of(checked, skipped, code);
  } else if (code == ExitCode::bad_data && !options.all && skipped.empty()) {
    fmt::print("{}\n", printable(advice_on_damage(steps.front().path)));
  }
  if (code != ExitCode::ok) {
    exit_code = static_cast<int>(code);
  }
}

void digest(const CkptOptions& options, const Access& access) {
  const KeyOptions keys = with_access(options.keys.options(), access);
  with_intact_step(options.folder, keys, [&](const StepFolder& step) {
    const std::string text = logical_digest(step.path, *step.manifest,
                                            options.model ? DigestScope::model : DigestScope::all);
    if (options.json) {
      print_json({{"schema", 1},
                  {"path", step.path.string()},
                  {"step", step.step},
                  {"scope", options.model ? "model" : "all"},
                  {"digest", text}});
    } else {
      fmt::print("{}\n", text);
    }
  });
}

}  // namespace

void add_ckpt_verify(CommandLine& ckpt, const std::shared_ptr<CkptOptions>& options, int& exit_code,
                     const AccessSource& access) {
  CommandLine& command =
      add_ckpt_subcommand(ckpt, "verify",
                          "Check every byte of a checkpoint; exit with 65 and name the file and "
                          "the block if it is damaged",
                          "trireme ckpt verify runs/demo/run/checkpoints --all", options);
  options->keys.add_to(command);
  command.add_flag("--all", options->all,
                   "Check every checkpoint in the folder, not only the newest complete one");
  command.add_flag("--json", options->json, "Print JSON");
  command.callback([options, access, &exit_code] { verify(*options, access(), exit_code); });
}

void add_ckpt_digest(CommandLine& ckpt, const std::shared_ptr<CkptOptions>& options,
                     const AccessSource& access) {
  CommandLine& command = add_ckpt_subcommand(
      ckpt, "digest",
      "Print the SHA-256 of a checkpoint's contents, which does not depend on the layout or the "
      "number of shards",
      "trireme ckpt digest runs/demo/run/checkpoints --model", options);
  options->keys.add_to(command);
  command.add_flag("--model", options->model, "Only the parameters, without the optimizer's state");
  command.add_flag("--json", options->json, "Print JSON");
  command.callback([options, access] { digest(*options, access()); });
}

}  // namespace trireme
