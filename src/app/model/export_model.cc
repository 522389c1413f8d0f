#include "src/app/model/export_model.h"

#include <nlohmann/json.hpp>

#include "io/checkpoint/intact_step.h"
#include "src/app/access/output_place.h"
#include "src/app/command/standard_output.h"
#include "src/app/evidence/release_check.h"
#include "src/app/model/model_exchange.h"
#include "src/app/model/model_signing.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/interchange/draft_folder.h"
#include "src/interchange/export_gguf.h"
#include "src/interchange/export_hf.h"
#include "src/interchange/export_onnx.h"
#include "src/interchange/export_peft.h"
#include "src/interchange/hf_config.h"

namespace trireme {
namespace {

void print_result(const ExportArguments& arguments, const ExportResult& result,
                  const ReleaseUse& release) {
  for (const std::string& why : result.skipped) {
    fmt::print(stderr, "trireme: skipped {}\n", printable(why));
  }
  if (arguments.json) {
    nlohmann::ordered_json json = {{"schema", 1},
                                   {"path", arguments.out},
                                   {"format", arguments.format},
                                   {"checkpoint", result.checkpoint.string()},
                                   {"step", result.step},
                                   {"dtype", result.type_name},
                                   {"other_dtypes", result.other_types},
                                   {"parameters", result.parameters},
                                   {"tensors", result.tensors},
                                   {"bytes", result.bytes},
                                   {"seconds", result.seconds},
                                   {"signed", !arguments.sign.empty()},
                                   {"released_by", release.signers}};
    json["tokenizer"] = result.tokenizer;
    json["notes"] = result.notes;
    json["warning"] = result.warning;
    json["logits"] = logits_json(result.difference);
    print_json(json);
    return;
  }
  fmt::print("{}: step {}, {} as {}, {} in {}\n", printable(arguments.out), result.step,
             counted(result.parameters, "parameter"), result.type_name, format_bytes(result.bytes),
             format_seconds(result.seconds));
  for (const auto& [type, matrices] : result.other_types) {
    fmt::print("as {}: {} whose rows are not whole blocks of {}\n", type,
               matrices == 1 ? "1 matrix" : fmt::format("{} matrices", matrices), result.type_name);
  }
  if (!result.tokenizer.empty()) {
    fmt::print("tokenizer: {}\n", printable(result.tokenizer));
  }
  for (const std::string& note : result.notes) {
    fmt::print("{}\n", printable(note));
  }
  print_logits(result.difference);
  if (!release.signers.empty()) {
    fmt::print("released by {}\n", printable(release.signers));
  }
  if (!arguments.sign.empty()) {
    fmt::print("signed: {}\n",
               printable((std::filesystem::path(arguments.out) / kModelSignatureName).string()));
  }
}

// As one_of(), but also understands what people call the files of hf.
Check known_format() {
  Check known = one_of({"hf", "gguf", "onnx", "triton", "peft"});
  known.complaint = [complaint = known.complaint](const std::string& text) {
    const bool meant = text == "safetensors" || text == "huggingface" || text == "transformers";
    return complaint(text) + (meant ? "; did you mean hf, which writes safetensors?" : "");
  };
  return known;
}

GgufType gguf_type(const std::string& word) {
  return word == "fp32"   ? GgufType::f32
         : word == "fp16" ? GgufType::f16
         : word == "bf16" ? GgufType::bf16
         : word == "q4_0" ? GgufType::q4_0
         : word == "q4_k" ? GgufType::q4_k
                          : GgufType::q8_0;
}

// Without --dtype: f32.
OnnxType onnx_type(DType dtype) {
  return dtype == DType::f16    ? OnnxType::f16
         : dtype == DType::bf16 ? OnnxType::bf16
                                : OnnxType::f32;
}

ExportResult exported(const ExportArguments& arguments, const ExportOptions& options,
                      Communicator& world, StepKeys& keys) {
  if (arguments.format == "hf") {
    return export_to_hf(options, world, keys);
  }
  if (arguments.format == "peft") {
    return export_to_peft(options, world, keys);
  }
  if (arguments.format == "gguf") {
    const std::string dtype = arguments.dtype.empty() ? "q8_0" : arguments.dtype;
    return export_to_gguf(options, gguf_type(dtype), world, keys);
  }
  return export_to_onnx(options, onnx_type(options.dtype.value_or(DType::f32)),
                        arguments.format == "onnx" ? OnnxFolder::plain : OnnxFolder::triton, world,
                        keys);
}

}  // namespace

void add_model_export(CommandLine& command, ExportArguments& arguments) {
  command.add_option("CHECKPOINT", arguments.checkpoint,
                     "A checkpoint, or a folder of checkpoints: then its newest valid one");
  command
      .add_option(
          "--format", arguments.format,
          "As hf, a folder for from_pretrained() of Hugging Face's transformers; as gguf, "
          "a file for llama.cpp; as onnx, a graph with its weights; as triton, the same in a "
          "folder for a model repository of Triton; as peft, adapters for "
          "PeftModel.from_pretrained(). To all but peft, adapters are added to their weights")
      .check(known_format());
  command.add_option("--out", arguments.out, "The folder to write, which must not exist")
      .type_name("DIR");
  command
      .add_option(
          "--dtype", arguments.dtype,
          "Element type of the weights; q8_0, q4_0 and q4_k only with gguf (default: that of "
          "the files which were imported, or fp32; with gguf q8_0, with onnx and triton "
          "fp32)")
      .check(one_of({"fp32", "bf16", "fp16", "q8_0", "q4_0", "q4_k"}));
  command.add_flag("--ema", arguments.ema,
                   "Export the moving average of the weights that optimizer.ema has kept");
  arguments.keys.add_to(command);
  command.add_flag("--plain", arguments.plain,
                   "Write an encrypted checkpoint's weights without encryption");
  command
      .add_option("--release", arguments.releases,
                  "A release of this checkpoint, if the policy of the site asks for one; can be "
                  "repeated, for the checkpoint beside which this one was trained")
      .one_value_per_use()
      .type_name("FILE");
  command
      .add_option("--sign", arguments.sign,
                  "A private key of ECDSA, or the URI of one in a token, that signs all files of "
                  "the export; the signature becomes model.sig in it")
      .type_name("KEY");
  command.add_flag("--json", arguments.json, "Print JSON");
}

void export_model(const ExportArguments& arguments, AppContext& context) {
  for (const auto& [name, value] : {std::pair("CHECKPOINT", &arguments.checkpoint),
                                    {"--format", &arguments.format},
                                    {"--out", &arguments.out}}) {
    if (value->empty()) {
      throw UsageError(fmt::format(
          "trireme export: {} is missing; 'trireme export --help' shows how to use it", name));
    }
  }
  context.status.phase = "export";
  check_outside(arguments.out, arguments.checkpoint, "is to be exported");
  check_in_no_data("--out", arguments.out);
  Communicator& world = context.session().world();
  ReleaseUses releases;
  StepKeys keys(world,
                with_export(arguments.keys.options(), context.access(),
                            {arguments.releases.begin(), arguments.releases.end()}, releases));
  ExportOptions options;
  options.out = arguments.out;
  options.dtype = dtype_of_precision(arguments.dtype);
  if (arguments.format != "gguf" && !arguments.dtype.empty() && !options.dtype) {
    throw ConfigError(
        fmt::format("--dtype {} is a type of GGUF files: with --format {}, choose fp32, bf16 or "
                    "fp16",
                    arguments.dtype, arguments.format));
  }
  options.weights = arguments.ema ? Weights::average : Weights::latest;
  options.plain = arguments.plain;
  StepFolder step;  // on rank 0
  options.finish = [&step, sign = model_signer(arguments.sign, arguments.out, world)](
                       const std::filesystem::path& folder, const StepFolder& exported) {
    step = exported;
    if (sign) {
      sign(folder, exported);
    }
  };
  ExportResult result;
  std::vector<std::string> skipped = use_intact_step(
      arguments.checkpoint, world, keys.options(), [&](const std::filesystem::path& folder) {
        options.checkpoint = folder;
        result = exported(arguments, options, world, keys);
      });
  result.skipped = std::move(skipped);
  if (world.rank() == 0) {
    if (!result.warning.empty()) {
      say("warning: " + result.warning);
    }
    const ReleaseUse& use = releases[step.path];
    note_export(context.audit, step, use, arguments.out, arguments.format);
    print_result(arguments, result, use);
  }
}

}  // namespace trireme
