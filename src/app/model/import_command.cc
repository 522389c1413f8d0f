#include "src/app/model/import_command.h"

#include <memory>

#include <nlohmann/json.hpp>

#include "src/app/access/key_choice.h"
#include "src/app/access/output_place.h"
#include "src/app/command/standard_output.h"
#include "src/app/model/model_exchange.h"
#include "src/app/model/model_provenance.h"
#include "src/app/model/model_yaml.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/interchange/hf_config.h"
#include "src/interchange/import_model.h"
#include "src/train/run/access_check.h"

namespace trireme {
namespace {

struct ImportArguments {
  ImportOptions import;
  KeyChoice keys;
  std::vector<std::string> label;
  bool plain = false;
  bool json = false;
};

void print_result(const ImportArguments& arguments, const ImportResult& result) {
  const std::string out = arguments.import.out.string();
  if (arguments.json) {
    nlohmann::ordered_json json = {{"schema", 1},
                                   {"path", out},
                                   {"model_type", result.model_type},
                                   {"dtype", torch_name(result.dtype)},
                                   {"parameters", result.parameters},
                                   {"tensors", result.tensors},
                                   {"source_bytes", result.source_bytes},
                                   {"bytes", result.bytes},
                                   {"padding_rows", result.padding_rows},
                                   {"seconds", result.seconds}};
    json["model"] = model_section(result.model);
    json["warning"] = result.warning;
    json["logits"] = logits_json(result.difference);
    print_json(json);
    return;
  }
  fmt::print("{}: {} of {}, {} in {}, from {} ({})\n", printable(out),
             counted(result.parameters, "parameter"), result.model_type, format_bytes(result.bytes),
             format_seconds(result.seconds), format_bytes(result.source_bytes),
             torch_name(result.dtype));
  if (result.padding_rows > 0) {
    fmt::print("left out: {} of the embedding beyond vocab_size\n",
               counted(result.padding_rows, "row"));
  }
  print_logits(result.difference);
  fmt::print("The configuration of a run that begins with it (checkpoint.init_from) has\n\n{}",
             model_yaml(model_section(result.model)));
}

void import_with(ImportArguments& arguments, AppContext& context) {
  context.status.phase = "import";
  check_in_no_data("--out", arguments.import.out);
  arguments.import.label = parse_label(arguments.label);
  Communicator& world = context.session().world();
  arguments.import.classifications = context.access().classifications();
  arguments.import.admit = [&](const std::optional<Label>& label) {
    check_on_all_ranks(context.access(),
                       {Deed::write, Thing::checkpoint, arguments.import.out, label}, world);
  };
  KeyOptions keys = arguments.keys.options();
  if (arguments.plain) {
    keys = {};
  }
  StepKeys opened(world, keys);
  const std::unique_ptr<const ModelProvenance> provenance =
      model_provenance(context, arguments.import.out);
  arguments.import.finish = [&](const std::filesystem::path& folder,
                                const std::vector<InputFile>& sources) {
    provenance->sign_import(folder, sources);
  };
  const ImportResult result = import_model(arguments.import, world, opened);
  if (world.rank() == 0) {
    provenance->note(context.audit);
    if (!result.warning.empty()) {
      say("warning: " + result.warning);
    }
    print_result(arguments, result);
  }
}

}  // namespace

void add_import_command(CommandLine& app, AppContext& context) {
  CommandLine& command =
      app.add_command("import", "Make a checkpoint from a model of another program");
  const auto arguments = std::make_shared<ImportArguments>();
  command
      .add_option("SOURCE", arguments->import.source,
                  "A model in the layout of Hugging Face: its folder, or a safetensors file with "
                  "config.json beside it")
      .required();
  command
      .add_option("--out", arguments->import.out, "The checkpoint's folder, which must not exist")
      .required()
      .type_name("DIR");
  arguments->keys.add_to(command);
  command.add_flag("--plain", arguments->plain,
                   "Do not encrypt the checkpoint, whatever the site's keys are");
  command
      .add_option("--label", arguments->label,
                  "Label the checkpoint: classification=WORD, jurisdiction=WORD[,WORD], "
                  "owner=WORD[,WORD] or retention=YYYY-MM-DD; can be repeated")
      .one_value_per_use()
      .type_name("KEY=VALUE");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "Example:\n"
      "  trireme import models/Llama-3.2-1B --out checkpoints/llama-1b\n"
      "GPT-2, Jais, Llama, Mistral and Qwen2 models are read. An option that would change what "
      "the model computes, and that this program does not have, is refused by name. At the end, "
      "logits of the checkpoint "
      "are compared with those of the source.");
  command.callback([arguments, &context] { import_with(*arguments, context); });
}

}  // namespace trireme
