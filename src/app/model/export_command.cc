#include "src/app/model/export_command.h"

#include <cstdlib>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <unistd.h>

#include "io/checkpoint/store.h"
#include "mpi/self_communicator.h"
#include "src/app/access/folder_access.h"
#include "src/app/access/key_choice.h"
#include "src/app/access/output_place.h"
#include "src/app/access/shown_run.h"
#include "src/app/command/written_files.h"
#include "src/app/launch/run_state.h"
#include "src/app/model/export_model.h"
#include "src/app/model/model_card.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/interchange/draft_folder.h"
#include "src/report/mlflow_files.h"
#include "src/study/redaction/redaction.h"
#include "src/train/start/run_place.h"

namespace trireme {
namespace {

struct MlflowOptions {
  std::string run;
  MlflowExport store;
  KeyChoice keys;
};

std::string user_name() {
  const passwd* const entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name;
}

// Returns what the card of the newest checkpoint says; nothing if there is none.
std::map<std::string, std::string> tags_of_newest(const std::filesystem::path& run,
                                                  const TextReader& reader, const Access& access) {
  for (const StepFolder& step : list_steps(run / "checkpoints")) {
    if (step.manifest) {  // the newest whole one
      check_access(access, Deed::read, step);
      return tags_of(model_card_of(step, reader));
    }
  }
  return {};
}

// Writes the run into its folder of the store, which appears when it is complete. Returns what
// write_mlflow_run() does. Another export of the same run may make the folder meanwhile.
std::vector<std::string> write_run(const RunFolder& run, const MlflowExport& store,
                                   const std::filesystem::path& folder) {
  const auto is_there = [&folder] {
    return std::filesystem::exists(std::filesystem::symlink_status(folder));
  };
  if (!is_there()) {
    try {
      SelfCommunicator alone;
      DraftFolder draft(alone, folder);
      std::vector<std::string> left_out = write_mlflow_run(run, store, folder, draft.path());
      draft.keep();
      return left_out;
    } catch (const PolicyError&) {
      if (!is_there()) {
        throw;
      }
    }
  }
  return write_mlflow_run(run, store, folder, folder);
}

void export_run(const MlflowOptions& options) {
  check_run_folder(options.run);
  if (std::filesystem::exists(options.store.folder / "config.yaml")) {
    throw ConfigError(fmt::format("{} is the folder of a run, and no store: name another folder",
                                  options.store.folder.string()));
  }
  check_outside_of({"STORE", options.store.folder}, options.run, "which is exported");
  if (const std::string problem = problem_with_place_of_result(options.store.folder / "x");
      !problem.empty()) {
    throw ConfigError(
        fmt::format("STORE {} {}: name another folder", options.store.folder.string(), problem));
  }
  MlflowExport store = options.store;
  const KeyedTextReader reader = options.keys.reader();
  store.state = state_of_run(options.run, reader).state;
  store.user = user_name();
  const bool is_running = store.state == "running" || store.state == "starting";
  store.tags = tags_of_newest(options.run, reader, options.keys.access());
  RunFolder run = read_run_folder(options.run, is_running, reader);
  warn_of_damaged_lines(run);
  redact_run(run);
  const std::filesystem::path folder = mlflow_run_folder(run, store);
  // Its ID follows from the folder's real name.
  if (const auto at = store.tags.find("trireme.checkpoint"); at != store.tags.end()) {
    at->second = redact_path(at->second);
  }
  store.tags["trireme.folder"] = redact_path(std::filesystem::absolute(run.path).string());
  move_mlflow_run(store, folder);
  const std::vector<std::string> left_out = write_run(run, store, folder);
  if (!run.config_error.empty()) {
    say(fmt::format("export mlflow: left out the parameters of the run: config.yaml is damaged: {}",
                    printable(run.config_error)));
  }
  for (const std::string& name : left_out) {
    say(fmt::format("export mlflow: left out the metric '{}': MLflow takes no such name",
                    printable(name)));
  }
  fmt::print("{}\n", printable(folder.string()));
}

struct CardOptions {
  std::string checkpoint;
  std::string out;
  KeyChoice keys;
};

void export_card(const CardOptions& options, AppContext& context) {
  if (std::filesystem::exists(std::filesystem::symlink_status(options.out))) {
    throw PolicyError(
        fmt::format("--out: {} exists, and a card replaces no file", printable(options.out)));
  }
  check_in_no_data("--out", options.out);
  std::vector<std::string> skipped;
  const StepFolder step = find_step(options.checkpoint, skipped);
  for (const std::string& why : skipped) {
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  check_access(context.access(), Deed::read, step);
  const ModelCard card = model_card_of(step, options.keys.reader());
  warn_of(card.damaged_metrics, card.metrics);
  write_named_file(options.out, markdown_of(card));
  fmt::print("{}: the card of {}\n", printable(options.out), printable(step.path.string()));
}

void add_card(CommandLine& command, AppContext& context) {
  CommandLine& card = command.add_command(
      "card", "Write what a checkpoint is, what it was made from, and its results, as Markdown");
  const auto options = std::make_shared<CardOptions>();
  options->keys.access = [&context]() -> const Access& { return context.access(); };
  card.add_option("CHECKPOINT", options->checkpoint,
                  "A checkpoint, or a folder of checkpoints: then its newest valid one")
      .required();
  card.add_option("--out", options->out, "The new file").required().type_name("FILE");
  options->keys.add_to(card);
  card.footer(
      "Example:\n"
      "  trireme export card runs/first/checkpoints --out models/first/README.md");
  card.callback([options, &context] { export_card(*options, context); });
}

}  // namespace

void add_export_command(CommandLine& app, AppContext& context) {
  CommandLine& command =
      app.add_command("export", "Write checkpoints and runs as files of other programs");
  const auto arguments = std::make_shared<ExportArguments>();
  add_model_export(command, *arguments);
  command.usage(
      "CHECKPOINT --format FORMAT --out DIR [OPTION]... | card CHECKPOINT --out FILE | mlflow "
      "RUNDIR STORE");
  add_card(command, context);
  command.footer(
      "Examples:\n"
      "  trireme export runs/first/checkpoints --format hf --out models/first\n"
      "  trireme export runs/tuned/checkpoints --format peft --out models/adapters\n"
      "  trireme export runs/first/checkpoints --format onnx --out models/first-onnx\n"
      "  trireme export runs/first/checkpoints --format hf --out models/first \\\n"
      "      --sign site.key\n"
      "  trireme export mlflow runs/first mlruns\n"
      "At the end, logits of the files are compared with those of the checkpoint.");
  command.callback([&command, arguments, &context] {
    if (!command.command_given()) {
      export_model(*arguments, context);
    }
  });
  CommandLine& mlflow =
      command.add_command("mlflow", "Write a run into a folder of MLflow's file store");
  const auto options = std::make_shared<MlflowOptions>();
  options->keys.access = [&context]() -> const Access& { return context.access(); };
  mlflow.add_option("RUNDIR", options->run, "The run's folder (run.dir)").required();
  mlflow
      .add_option("STORE", options->store.folder,
                  "Folder of the file store (mlruns), made if needed")
      .required();
  mlflow.add_option("--experiment", options->store.experiment, "Name of MLflow's experiment")
      .check({"", [](const std::string& name) {
                return name.empty() ? std::string("the name is empty") : std::string();
              }});
  options->keys.add_to(mlflow);
  mlflow.footer(
      "Example:\n"
      "  trireme export mlflow runs/first mlruns\n"
      "Metrics, the configuration as parameters, and the state, parents, and digests of the newest "
      "checkpoint and its data as tags. Exporting a run again replaces what was exported before.");
  mlflow.callback([options] { export_run(*options); });
}

}  // namespace trireme
