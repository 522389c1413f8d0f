#include "src/app/model/export_command.h"

#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pwd.h>
#include <unistd.h>

#include "src/app/access/key_choice.h"
#include "src/app/launch/run_state.h"
#include "src/app/model/export_model.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/report/mlflow_files.h"

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

void export_run(const MlflowOptions& options) {
  check_run_folder(options.run);
  MlflowExport store = options.store;
  const KeyedTextReader reader = options.keys.reader();
  store.state = state_of_run(options.run, reader).state;
  store.user = user_name();
  const std::filesystem::path metrics = std::filesystem::path(options.run) / "metrics.jsonl";
  if (is_sealed_file(metrics)) {
    (void)reader.read(metrics);  // says why, if they cannot be opened
  }
  const bool is_running = store.state == "running" || store.state == "starting";
  const auto folder = export_to_mlflow(read_run_folder(options.run, is_running, reader), store);
  fmt::print("{}\n", printable(folder.string()));
}

}  // namespace

void add_export_command(CommandLine& app, AppContext& context) {
  CommandLine& command =
      app.add_command("export", "Write checkpoints and runs as files of other programs");
  const auto arguments = std::make_shared<ExportArguments>();
  add_model_export(command, *arguments);
  command.usage("CHECKPOINT --format FORMAT --out DIR [OPTION]... | mlflow RUNDIR STORE");
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
  mlflow.add_option("--experiment", options->store.experiment, "Name of MLflow's experiment");
  options->keys.add_to(mlflow);
  mlflow.footer(
      "Example:\n"
      "  trireme export mlflow runs/first mlruns\n"
      "Metrics, the configuration as parameters, and the state as a tag. Exporting a run again "
      "replaces what was exported before.");
  mlflow.callback([options] { export_run(*options); });
}

}  // namespace trireme
