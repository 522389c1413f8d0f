#include "src/app/checkpoint/ckpt_command.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/intact_step.h"
#include "io/checkpoint/memory/node_memory.h"
#include "src/app/checkpoint/ckpt_subcommands.h"
#include "src/app/command/standard_output.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/train/run/fingerprint.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

void warn_skipped(const std::vector<std::string>& skipped) {
  for (const std::string& line : skipped) {
    fmt::print(stderr, "skipped: {}\n", printable(line));
  }
}

ordered_json to_json(const StepFolder& step) {
  ordered_json object = {{"path", step.path.string()},
                         {"step", step.step},
                         {"valid", step.manifest.has_value()},
                         {"pinned", step.pinned}};
  if (!step.manifest) {
    object["problem"] = step.problem;
    return object;
  }
  const Manifest& manifest = *step.manifest;
  object["samples"] = manifest.meta.samples;
  object["generation"] = manifest.generation;
  object["read_back"] = manifest.read_back;
  object["bytes"] = manifest.bytes();
  object["shards"] = manifest.shards.size();
  object["tensors"] = manifest.tensors.size();
  object["created"] = manifest.created;
  object["software"] = manifest.software;
  return object;
}

ordered_json to_json(const MemoryStep& step) {
  ordered_json object = {{"path", step.path.string()},
                         {"step", step.name.step},
                         {"generation", step.name.generation},
                         {"copy", step.is_partner},
                         {"valid", step.manifest.has_value()}};
  if (!step.manifest) {
    object["problem"] = step.problem;
    return object;
  }
  object["shards_here"] = step.shards.size();
  object["shards"] = step.manifest->shards.size();
  object["bytes"] = step.manifest->bytes();
  object["created"] = step.manifest->created;
  return object;
}

template <class Step>
ordered_json array_of(const std::vector<Step>& steps) {
  ordered_json array = ordered_json::array();
  for (const Step& step : steps) {
    array.push_back(to_json(step));
  }
  return array;
}

void print_memory(const std::vector<MemoryStep>& steps) {
  fmt::print("in memory:\n{:>10} {:>4} {:>11} {:>13}  {:<20}  {}\n", "step", "run", "size",
             "shards here", "created", "state");
  for (const MemoryStep& step : steps) {
    if (!step.manifest) {
      fmt::print("{:>10} {:>4} {:>11} {:>13}  {:<20}  INVALID: {}\n", step.name.step,
                 step.name.generation, "", "", "", printable(step.problem));
      continue;
    }
    const Manifest& m = *step.manifest;
    fmt::print("{:>10} {:>4} {:>11} {:>13}  {:<20}  {}\n", step.name.step, step.name.generation,
               format_bytes(m.bytes()),
               fmt::format("{} of {}", step.shards.size(), m.shards.size()), printable(m.created),
               step.is_partner ? "copy for a partner" : "own");
  }
}

void list(const CkptOptions& options) {
  const bool with_memory = !options.memory.empty();
  if (with_memory && !fs::is_directory(options.memory)) {
    throw NotFound(
        fmt::format("--memory {}: there is no such folder; it is named by "
                    "TRIREME_NODE_DIR in a rank's environment, and is removed when its "
                    "launch ends",
                    options.memory));
  }
  const std::vector<MemoryStep> in_memory = list_memory_steps({options.memory, ""});
  const std::vector<StepFolder> steps =
      with_memory ? list_steps(clean_path(options)) : all_steps(options);
  if (options.json) {
    ordered_json object = {{"schema", 1}, {"checkpoints", array_of(steps)}};
    if (with_memory) {
      object["memory"] = array_of(in_memory);
    }
    print_json(object);
    return;
  }
  if (with_memory) {
    print_memory(in_memory);
    fmt::print("on disk:\n");
  }
  fmt::print("{:>10} {:>12} {:>4} {:>11} {:>6}  {:<20}  {}\n", "step", "samples", "run", "size",
             "shards", "created", "state");
  for (const StepFolder& step : steps) {
    if (!step.manifest) {
      fmt::print("{:>10} {:>12} {:>4} {:>11} {:>6}  {:<20}  {}: {}\n", step.step, "", "", "", "",
                 "", step.unreadable ? "UNREADABLE" : "INVALID", printable(step.problem));
      continue;
    }
    const Manifest& m = *step.manifest;
    fmt::print("{:>10} {:>12} {:>4} {:>11} {:>6}  {:<20}  {}{}\n", step.step, m.meta.samples,
               m.generation, format_bytes(m.bytes()), m.shards.size(), printable(m.created),
               m.read_back ? "read back" : "written", step.pinned ? ", pinned" : "");
  }
}

ordered_json details(const StepFolder& step) {
  const Manifest& manifest = *step.manifest;
  ordered_json object = to_json(step);
  object["config"] = *manifest.meta.config;
  object["numerics"] = *manifest.meta.numerics;
  object["extra"] = *manifest.meta.extra;
  object["label"] = label_json(manifest.meta.label);
  object["tensors"] = ordered_json::array();
  for (const StoredTensor& tensor : manifest.tensors) {
    object["tensors"].push_back({{"name", tensor.name},
                                 {"dtype", dtype_name(tensor.dtype)},
                                 {"shape", tensor.shape.to_vector()},
                                 {"blocks", tensor.blocks.size()}});
  }
  return object;
}

// Prints an object as lines of YAML.
void print_fields(std::string_view name, const nlohmann::json& object) {
  fmt::print("  {}:\n", name);
  for (const auto& [key, value] : object.items()) {
    fmt::print("    {}: {}\n", printable(key), printable(value.dump()));
  }
}

void show(const CkptOptions& options) {
  const StepFolder step = chosen_step(options);
  if (options.json) {
    ordered_json object = {{"schema", 1}};
    object.update(details(step));
    print_json(object);
    return;
  }
  const Manifest& m = *step.manifest;
  fmt::print("{}\n  step {}, {}, run {}, {} in {}{}, {} by {}\n", printable(step.path.string()),
             step.step, counted(m.meta.samples, "sample"), m.generation, format_bytes(m.bytes()),
             counted(m.shards.size(), "shard"), m.data_key.empty() ? "" : ", encrypted",
             printable(m.created), printable(m.software));
  nlohmann::json extra = *m.meta.extra;
  if (const auto counters = extra.find("counters");
      counters != extra.end() && counters->is_object()) {
    // The history has two numbers per step and is printed with --json only.
    counters->erase("history");
  }
  fmt::print("  label: {}\n", m.meta.label ? m.meta.label->to_string() : "(none)");
  print_fields("config", readable_numbers(by_configuration_keys(*m.meta.config)));
  print_fields("numerics", *m.meta.numerics);
  print_fields("extra", extra);
  for (const StoredTensor& tensor : m.tensors) {
    fmt::print("  {:<5} {:<20} {:>10}  {}\n", dtype_name(tensor.dtype), tensor.shape.to_string(),
               counted(tensor.blocks.size(), "block"), printable(tensor.name));
  }
}

}  // namespace

StepFolder chosen_step(const CkptOptions& options) {
  std::vector<std::string> skipped;
  StepFolder step = find_step(options.folder, skipped);
  warn_skipped(skipped);
  return step;
}

void with_intact_step(const std::string& folder, const KeyOptions& keys,
                      const std::function<void(StepFolder&)>& work) {
  warn_skipped(use_intact_step(folder, keys, [&](const fs::path& path) {
    StepFolder step = inspect_step(path);
    if (!step.manifest) {
      throw DataError(step.problem);
    }
    try {
      unlock(*step.manifest, step.path, keys);
      work(step);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}\n{}", error.what(), advice_on_damage(step.path)));
    }
  }));
}

fs::path clean_path(const CkptOptions& options) {
  const fs::path path = options.folder;
  return path.has_filename() ? path : path.parent_path();
}

std::vector<StepFolder> all_steps(const CkptOptions& options) {
  const fs::path folder = clean_path(options);
  if (is_step_folder(folder) && fs::exists(folder)) {
    return {inspect_step(folder)};
  }
  std::vector<StepFolder> steps = list_steps(folder);
  if (steps.empty()) {
    throw no_checkpoint_in(folder);
  }
  return steps;
}

CommandLine& add_ckpt_subcommand(CommandLine& ckpt, const char* name, const char* what,
                                 const char* example, const std::shared_ptr<CkptOptions>& options,
                                 const char* folder) {
  CommandLine& command = ckpt.add_command(name, what);
  command.add_option("DIR", options->folder, folder).required();
  command.footer(fmt::format("Example:\n  {}", example));
  return command;
}

void add_ckpt_command(CommandLine& app, int& exit_code, AuditTrail& audit,
                      const AccessSource& access) {
  CommandLine& ckpt = app.add_command("ckpt", "List, check, compare and delete checkpoints");
  ckpt.require_command();
  ckpt.footer("Example:\n  trireme ckpt ls runs/demo/run/checkpoints");
  const auto options = std::make_shared<CkptOptions>();

  CommandLine& ls =
      add_ckpt_subcommand(ckpt, "ls", "List the checkpoints in a folder, damaged ones first",
                          "trireme ckpt ls runs/demo/run/checkpoints --json", options,
                          "A folder of checkpoints, or a single checkpoint");
  ls.add_flag("--json", options->json, "Print JSON");
  ls.add_option("--memory", options->memory,
                "Also list the checkpoints in this node's memory: the folder that "
                "TRIREME_NODE_DIR names")
      .type_name("DIR");
  ls.callback([options] { list(*options); });

  CommandLine& shown =
      add_ckpt_subcommand(ckpt, "show", "Show the metadata and the tensors of a checkpoint",
                          "trireme ckpt show runs/demo/run/checkpoints/step-00000100", options);
  shown.add_flag("--json", options->json, "Print JSON");
  shown.callback([options] { show(*options); });

  add_ckpt_verify(ckpt, options, exit_code, access);
  add_ckpt_digest(ckpt, options, access);
  add_ckpt_export(ckpt, audit, access);
  add_ckpt_prune(ckpt, options, audit, access);
}

}  // namespace trireme
