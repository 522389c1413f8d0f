#include "src/app/config_command.h"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/app/standard_output.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/train/run_config.h"

namespace trireme {
namespace {

struct ShowOptions {
  std::string file;
  std::vector<std::string> arguments;
  bool json = false;
};

void show_as_json(const LoadedConfig& loaded) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  for (const ResolvedKey& key : loaded.binder.resolved()) {
    keys.push_back({{"key", key.key},
                    {"value", key.value.to_yaml()},
                    {"origin", key.origin},
                    {"doc", key.doc},
                    {"allowed", key.allowed}});
  }
  print_json({{"schema", 1}, {"keys", keys}});
}

void show(const ShowOptions& options) {
  const LoadedConfig loaded = load_run_config(
      {.file = options.file, .arguments = options.arguments, .environment = environ});
  if (options.json) {
    show_as_json(loaded);
    return;
  }
  const RunConfig& c = loaded.config;
  fmt::print("{}", loaded.binder.to_yaml());
  fmt::print("# {} parameters; {} tokens a step in {} micro-batches; {} FLOPs a token\n",
             format_count(static_cast<double>(parameter_count(c.model))), c.tokens_a_step(),
             c.micro_batches(), format_count(flops_per_token(c.model, c.data.sequence)));
}

}  // namespace

void add_config_command(CLI::App& app, AppContext&) {
  CLI::App* config = app.add_subcommand("config", "Look at configurations");
  config->require_subcommand(1);
  config->footer("Example:\n  trireme config show configs/run/demo.yaml --json");
  CLI::App* command = config->add_subcommand(
      "show", "Print the resolved configuration and where each value came from");
  const auto options = std::make_shared<ShowOptions>();
  command->add_option("CONFIG", options->file, "the run's YAML file")->required();
  command->add_option("KEY=VALUE", options->arguments, "changes, as for `trireme train`");
  command->add_flag("--json", options->json, "as JSON");
  command->footer("Example:\n  trireme config show configs/run/demo.yaml train.steps=20");
  command->callback([options] { show(*options); });
}

}  // namespace trireme
