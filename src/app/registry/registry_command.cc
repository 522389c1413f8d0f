#include "src/app/registry/registry_command.h"

#include <memory>

#include "src/app/registry/registry_actions.h"

namespace trireme {
namespace {

using SharedOptions = std::shared_ptr<RegistryOptions>;

constexpr const char* kReference =
    "NAME for the newest version, NAME:N for version N, or NAME@STAGE for the one in use there";
constexpr const char* kQuick =
    "Of a checkpoint, compare the manifest and the sizes of the shards, not what they hold";
constexpr const char* kWeights =
    "Which weights the result has to be of: plain, or how the model will be used, as in "
    "average,int8 for `trireme eval --ema --quantize int8`";
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
  command.add_option("--weights", options->weights, kWeights).type_name("WORDS");
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
  command.callback([options, &exit_code] { list_versions(*options, exit_code); });
}

void add_show_and_path(CommandLine& registry, const AccessSource& access) {
  const auto showing = std::make_shared<RegistryOptions>();
  CommandLine& shown =
      add_one(registry, showing, "show", "Show a version, and all changes of its model");
  shown.add_option("MODEL", showing->model, kReference).required();
  shown.add_flag("--json", showing->json, "Print JSON");
  shown.footer("Example:\n  trireme registry show chat:3");
  shown.callback([showing] { show_version(*showing); });

  const auto options = std::make_shared<RegistryOptions>();
  CommandLine& path =
      add_one(registry, options, "path", "Print where a version's files are, for scripts");
  path.add_option("MODEL", options->model, kReference).required();
  path.add_flag("--unchecked", options->unchecked, "Do not look whether they have changed");
  path.footer(
      "Example:\n"
      "  trireme generate --checkpoint \"$(trireme registry path chat@production)\"");
  path.callback([options, access] { print_model_path(*options, access); });
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
  promotion.add_option("--weights", options->weights, kWeights).type_name("WORDS");
  promotion.add_flag(
      "--despite-gates", options->despite_gates,
      "Promote a version that has missed its gates; the record of the change says so");
  promotion.add_flag("--quick", options->quick, kQuick);
  promotion.footer(
      "Example:\n"
      "  trireme registry promote chat:3 --stage production --result eval.json");
  promotion.callback(
      [options, access, &exit_code] { promote_version(*options, access, exit_code); });

  const auto back = std::make_shared<RegistryOptions>();
  CommandLine& rollback =
      add_one(registry, back, "rollback", "Go back to the version that a stage had before");
  rollback.add_option("NAME", back->model, "The model's name").required();
  rollback.add_option("--stage", back->stage, kStage).required();
  rollback.add_option("--reason", back->note, "Why");
  rollback.add_flag("--quick", back->quick, kQuick);
  rollback.footer("Example:\n  trireme registry rollback chat --stage production");
  rollback.callback([back, access] { roll_back_stage(*back, access); });
}

void add_check(CommandLine& registry, const AccessSource& access, int& exit_code) {
  const auto options = std::make_shared<RegistryOptions>();
  CommandLine& command = add_one(registry, options, "check",
                                 "Check that the files of all versions are as they were added");
  command.add_option("NAME", options->model, "Only those of this model");
  command.add_flag("--quick", options->quick, kQuick);
  command.footer("Example:\n  trireme registry check --registry /models/registry");
  command.callback([options, access, &exit_code] { check_versions(*options, access, exit_code); });
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
