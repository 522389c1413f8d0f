#include "src/app/ckpt_command.h"

#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/logical_digest.h"
#include "io/checkpoint/memory/node_memory.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/verify.h"
#include "src/app/standard_output.h"
#include "src/base/units.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct CkptOptions {
  std::string folder;
  bool json = false;
  bool model = false;
  bool all = false;
  bool dry_run = false;
  std::string memory;  // a node's folder
  Retention retention;
};

void warn_skipped(const std::vector<std::string>& skipped) {
  for (const std::string& line : skipped) {
    fmt::print(stderr, "skipped: {}\n", line);
  }
}

StepFolder chosen_step(const CkptOptions& options) {
  std::vector<std::string> skipped;
  StepFolder step = find_step(options.folder, skipped);
  warn_skipped(skipped);
  return step;
}

// The path without a slash at its end.
fs::path clean_path(const CkptOptions& options) {
  const fs::path path = options.folder;
  return path.has_filename() ? path : path.parent_path();
}

// The steps of a checkpoint folder, or the one step that is given; NotFound if there are none.
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
                 step.name.generation, "", "", "", step.problem);
      continue;
    }
    const Manifest& m = *step.manifest;
    fmt::print("{:>10} {:>4} {:>11} {:>13}  {:<20}  {}\n", step.name.step, step.name.generation,
               format_bytes(m.bytes()),
               fmt::format("{} of {}", step.shards.size(), m.shards.size()), m.created,
               step.is_partner ? "copy for a partner" : "own");
  }
}

void list(const CkptOptions& options) {
  const bool with_memory = !options.memory.empty();
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
                 "", step.unreadable ? "UNREADABLE" : "INVALID", step.problem);
      continue;
    }
    const Manifest& m = *step.manifest;
    fmt::print("{:>10} {:>12} {:>4} {:>11} {:>6}  {:<20}  {}{}\n", step.step, m.meta.samples,
               m.generation, format_bytes(m.bytes()), m.shards.size(), m.created,
               m.read_back ? "read back" : "written", step.pinned ? ", pinned" : "");
  }
}

ordered_json details(const StepFolder& step) {
  const Manifest& manifest = *step.manifest;
  ordered_json object = to_json(step);
  object["config"] = *manifest.meta.config;
  object["numerics"] = *manifest.meta.numerics;
  object["extra"] = *manifest.meta.extra;
  object["tensors"] = ordered_json::array();
  for (const StoredTensor& tensor : manifest.tensors) {
    object["tensors"].push_back({{"name", tensor.name},
                                 {"dtype", dtype_name(tensor.dtype)},
                                 {"shape", tensor.shape.to_vector()},
                                 {"blocks", tensor.blocks.size()}});
  }
  return object;
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
  fmt::print("{}\n  step {}, {}, run {}, {} in {}, {} by {}\n", step.path.string(), step.step,
             counted(m.meta.samples, "sample"), m.generation, format_bytes(m.bytes()),
             counted(m.shards.size(), "shard"), m.created, m.software);
  nlohmann::json extra = *m.meta.extra;
  if (const auto counters = extra.find("counters");
      counters != extra.end() && counters->is_object()) {
    counters->erase("history");  // two numbers a step, for programs (--json)
  }
  fmt::print("  config   {}\n  numerics {}\n  extra    {}\n", m.meta.config->dump(),
             m.meta.numerics->dump(), extra.dump());
  for (const StoredTensor& tensor : m.tensors) {
    fmt::print("  {:<5} {:<20} {:>10}  {}\n", dtype_name(tensor.dtype), tensor.shape.to_string(),
               counted(tensor.blocks.size(), "block"), tensor.name);
  }
}

// Where to go on from damage in a step that was read.
std::string advice(const StepFolder& step) {
  const fs::path folder = step.path.has_parent_path() ? step.path.parent_path() : fs::path(".");
  return fmt::format(
      "'trireme ckpt verify --all {}' shows which checkpoints are intact; name one by its own "
      "folder, {}/step-...",
      folder.string(), folder.string());
}

// The number of faults; prints them.
std::size_t verify_one(const StepFolder& step) {
  check_readable(step);
  const std::vector<std::string> faults =
      step.manifest ? verify_step(step.path, *step.manifest) : std::vector{step.problem};
  for (const std::string& line : faults) {
    fmt::print("BAD {}\n", line);
  }
  if (faults.empty()) {
    fmt::print("ok  {}: all digests match, {} in {}\n", step.path.string(),
               format_bytes(step.manifest->bytes()),
               counted(step.manifest->shards.size(), "shard"));
  }
  return faults.size();
}

void verify(const CkptOptions& options, int& exit_code) {
  std::size_t faults = 0;
  if (options.all) {
    for (const StepFolder& step : all_steps(options)) {
      faults += verify_one(step);
    }
  } else {
    const StepFolder step = chosen_step(options);
    faults = verify_one(step);
    if (faults > 0) {
      fmt::print("{}\n", advice(step));
    }
  }
  if (faults > 0) {
    exit_code = static_cast<int>(ExitCode::bad_data);
  }
}

void digest(const CkptOptions& options) {
  const StepFolder step = chosen_step(options);
  const CheckpointReader reader(step.path, *step.manifest);
  try {
    fmt::print("{}\n",
               logical_digest(reader, options.model ? DigestScope::model : DigestScope::all));
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}\n{}", e.what(), advice(step)));
  }
}

void prune(const CkptOptions& options) {
  const std::vector<StepFolder> steps = all_steps(options);
  if (is_step_folder(clean_path(options))) {
    throw ConfigError(fmt::format(
        "{} is a single checkpoint: name the folder that holds the checkpoints (to delete a "
        "single checkpoint, remove its folder)",
        options.folder));
  }
  const std::vector<fs::path> doomed = plan_retention(steps, options.retention);
  if (doomed.empty()) {
    fmt::print("nothing to prune: {}\n", counted(steps.size(), "checkpoint") + " to keep");
  }
  for (const fs::path& path : doomed) {
    fmt::print("{} {}\n", options.dry_run ? "would delete" : "deleting", path.string());
    if (!options.dry_run) {
      delete_step(path, 0, {});
    }
  }
}

CommandLine& add(CommandLine& parent, const char* name, const char* what, const char* example,
                 const std::shared_ptr<CkptOptions>& options) {
  CommandLine& command = parent.add_command(name, what);
  command
      .add_option("DIR", options->folder,
                  "A checkpoint, or a folder of checkpoints: then its newest valid one")
      .required();
  command.footer(fmt::format("Example:\n  {}", example));
  return command;
}

void add_retention_flags(CommandLine& command, const std::shared_ptr<CkptOptions>& options) {
  command.add_option("--keep", options->retention.keep, "Keep the N newest checkpoints, at least 2")
      .show_default();
  command
      .add_option("--keep-every", options->retention.keep_every,
                  "Also keep the steps divisible by N; 0 = none")
      .show_default();
  command.add_flag("--dry-run", options->dry_run, "Only print what would be deleted");
}

}  // namespace

void add_ckpt_command(CommandLine& app, int& exit_code) {
  CommandLine& ckpt = app.add_command("ckpt", "List, check, compare and delete checkpoints");
  ckpt.require_command();
  ckpt.footer("Example:\n  trireme ckpt ls runs/demo/run/checkpoints");
  const auto options = std::make_shared<CkptOptions>();

  CommandLine& ls = add(ckpt, "ls", "List the checkpoints in a folder, damaged ones first",
                        "trireme ckpt ls runs/demo/run/checkpoints --json", options);
  ls.add_flag("--json", options->json, "Print JSON");
  ls.add_option("--memory", options->memory,
                "Also list the checkpoints in this node's memory: the folder that "
                "TRIREME_NODE_DIR names")
      .type_name("DIR");
  ls.callback([options] { list(*options); });

  CommandLine& shown = add(ckpt, "show", "Show the metadata and the tensors of a checkpoint",
                           "trireme ckpt show runs/demo/run/checkpoints/step-00000100", options);
  shown.add_flag("--json", options->json, "Print JSON");
  shown.callback([options] { show(*options); });

  CommandLine& verified =
      add(ckpt, "verify",
          "Check every byte of a checkpoint; exit with 65 and name the file and "
          "the block if it is damaged",
          "trireme ckpt verify runs/demo/run/checkpoints --all", options);
  verified.add_flag("--all", options->all,
                    "Check every checkpoint in the folder, not only the newest");
  verified.callback([options, &exit_code] { verify(*options, exit_code); });

  CommandLine& digested = add(ckpt, "digest",
                              "Print the SHA-256 of a checkpoint's contents, which does not "
                              "depend on the layout or the number of shards",
                              "trireme ckpt digest runs/demo/run/checkpoints --model", options);
  digested.add_flag("--model", options->model,
                    "Only the parameters, without the optimizer's state");
  digested.callback([options] { digest(*options); });

  CommandLine& pruned =
      add(ckpt, "prune", "Delete old checkpoints, except pinned and damaged ones",
          "trireme ckpt prune runs/demo/run/checkpoints --keep 2 --dry-run", options);
  add_retention_flags(pruned, options);
  pruned.callback([options] { prune(*options); });
}

}  // namespace trireme
