#include "src/app/run/config_command.h"

#include <charconv>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/app/command/standard_output.h"
#include "src/app/run/fault_sites.h"
#include "src/base/fault_plan.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/train/run/batch_ramp_text.h"
#include "src/train/run/model_presets.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace {

struct ShowOptions {
  std::string file;
  std::vector<std::string> arguments;
  bool json = false;
};

// Returns a number or a boolean for a key that takes one, and otherwise the text. Text that looks
// like a number stays text: run.name may be "7".
nlohmann::ordered_json json_of(const std::string& item, const std::string& allowed) {
  if (allowed == "true|false") {
    return item == "true";
  }
  for (const char* const textual : {"text", "path", "size"}) {
    if (allowed.starts_with(textual)) {
      return item;
    }
  }
  const char* const end = item.data() + item.size();
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(item.data(), end, whole);
      error == std::errc() && at == end) {
    return whole;
  }
  double real = 0;
  if (const auto [at, error] = std::from_chars(item.data(), end, real);
      error == std::errc() && at == end && std::isfinite(real)) {
    return real;
  }
  return item;
}

// Returns a list of objects. Keys with dots stay as they are.
nlohmann::ordered_json json_of_mappings(const ConfigValue& value) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& item : value.items) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (const ConfigEntry& entry : parse_config(item, "")) {
      object[entry.key] = entry.value.kind == ConfigValue::Kind::scalar
                              ? json_of(entry.value.items.at(0), "")
                              : nlohmann::ordered_json();
    }
    list.push_back(std::move(object));
  }
  return list;
}

nlohmann::ordered_json json_of(const ResolvedKey& key) {
  const ConfigValue& value = key.value;
  switch (value.kind) {
    case ConfigValue::Kind::null:
      return nullptr;
    case ConfigValue::Kind::mapping:
      return nlohmann::ordered_json::object();
    case ConfigValue::Kind::scalar:
      return json_of(value.items.at(0), key.allowed);
    case ConfigValue::Kind::list:
      break;
    case ConfigValue::Kind::mappings:
      return json_of_mappings(value);
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& item : value.items) {
    list.push_back(json_of(item, key.allowed));
  }
  return list;
}

void show_as_json(const LoadedConfig& loaded) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  for (const ResolvedKey& key : loaded.binder.resolved()) {
    keys.push_back({{"key", key.key},
                    {"value", json_of(key)},
                    {"origin", key.origin},
                    {"doc", key.doc},
                    {"allowed", key.allowed}});
  }
  print_json({{"schema", 2}, {"keys", keys}});
}

void show(const ShowOptions& options) {
  const LoadedConfig loaded = load_run_config(
      {.file = options.file, .arguments = options.arguments, .environment = environ});
  if (options.json) {
    show_as_json(loaded);
    return;
  }
  const RunConfig& c = loaded.config;
  fmt::print("{}", printable_lines(loaded.binder.to_yaml()));  // with YAML's escapes
  fmt::print("# {} parameters; {} per step in {}; {} FLOPs per token\n",
             format_count(static_cast<double>(parameter_count(c.model))),
             counted(c.tokens_per_step(), "token"), counted(c.micro_batches(), "micro-batch"),
             format_count(flops_per_token(c.model, c.data.sequence)));
  if (c.batches().stages() > 1) {
    fmt::print("# {}\n", describe_ramp(c.batches()));
  }
}

void list_faults(bool json) {
  nlohmann::ordered_json sites = nlohmann::ordered_json::array();
  for (const FaultSite& site : fault_sites()) {
    sites.push_back({{"site", site.name}, {"kind", name_of(site.kind)}, {"where", site.where}});
  }
  if (json) {
    print_json({{"schema", 1}, {"sites", sites}, {"actions", fault_actions()}});
    return;
  }
  for (const FaultSite& site : fault_sites()) {
    fmt::print("{:<24} {:<6} {}\n", site.name, name_of(site.kind), site.where);
  }
  fmt::print(
      "\nTRIREME_FAULTS=site[@attempt]:rank:nth:action[,...], or @FILE with a list\n"
      "`faults`; attempt: of trireme launch; rank: a number or *; nth: N, N+ (from then on)\n"
      "or *; action: {}\n"
      "corrupt needs a site of kind data; short needs file.read or file.write.\n",
      fmt::join(fault_actions(), ", "));
}

// Returns the comment at the beginning of a preset's file.
std::string summary_of(const ModelPreset& preset) {
  const std::string_view line = preset.yaml.substr(0, preset.yaml.find('\n'));
  return std::string(line.starts_with("# ") ? line.substr(2) : "");
}

void list_presets(bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ModelPreset& preset : model_presets()) {
    const ModelConfig model = preset_model_config(std::string(preset.name));
    const std::int64_t parameters = parameter_count(model);
    list.push_back({{"name", preset.name},
                    {"family", family_name(model.family)},
                    {"parameters", parameters},
                    {"layers", model.layers},
                    {"hidden", model.hidden},
                    {"context", model.context},
                    {"vocab", model.vocab},
                    {"description", summary_of(preset)}});
  }
  if (json) {
    print_json({{"schema", 1}, {"presets", list}});
    return;
  }
  fmt::print("{:<14} {:<6} {:>10} {:>6} {:>6} {:>8} {:>8}\n", "preset", "family", "parameters",
             "layers", "hidden", "context", "vocab");
  for (const auto& preset : list) {
    fmt::print("{:<14} {:<6} {:>10} {:>6} {:>6} {:>8} {:>8}\n", preset["name"].get<std::string>(),
               preset["family"].get<std::string>(),
               format_count(preset["parameters"].get<double>()),
               preset["layers"].get<std::int64_t>(), preset["hidden"].get<std::int64_t>(),
               preset["context"].get<std::int64_t>(), preset["vocab"].get<std::int64_t>());
  }
}

void add_presets_command(CommandLine& config) {
  CommandLine& command = config.add_command("presets", "List the model presets (model.preset)");
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON");
  command.footer("Example:\n  trireme config presets");
  command.callback([json] { list_presets(*json); });
}

void add_faults_command(CommandLine& config) {
  CommandLine& command = config.add_command(
      "faults", "List the fault points and actions that TRIREME_FAULTS can name");
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print JSON");
  command.footer(
      "Example:\n"
      "  trireme config faults\n"
      "  TRIREME_FAULTS=ckpt.rename:0:1:kill mpirun -n 2 trireme train run.yaml\n"
      "docs/faults.md describes what each fault does to a run.");
  command.callback([json] { list_faults(*json); });
}

}  // namespace

void add_config_command(CommandLine& app, AppContext&) {
  CommandLine& config = app.add_command("config", "Show configurations, presets and fault points");
  config.require_command();
  config.footer("Example:\n  trireme config show configs/run/demo.yaml --json");
  CommandLine& command = config.add_command(
      "show", "Print the resolved configuration and where each value comes from");
  const auto options = std::make_shared<ShowOptions>();
  command.add_option("CONFIG", options->file, "The run's YAML file").required();
  command.add_option("KEY=VALUE", options->arguments,
                     "Configuration keys to override, as in train.steps=100");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example:\n  trireme config show configs/run/demo.yaml train.steps=20");
  command.callback([options] { show(*options); });
  add_presets_command(config);
  add_faults_command(config);
}

}  // namespace trireme
