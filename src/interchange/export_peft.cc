#include "src/interchange/export_peft.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "io/checkpoint/exported_metadata.h"
#include "io/checkpoint/safetensors.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/interchange/draft_folder.h"
#include "src/interchange/elements.h"
#include "src/interchange/hf_config.h"
#include "src/interchange/hf_files.h"
#include "src/nn/model_size.h"
#include "src/train/run/model_fingerprint.h"
#include "src/train/saving/base_weights.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr const char* kAdapterName = "adapter_model.safetensors";
constexpr const char* kAdapterConfigName = "adapter_config.json";

// Returns the relative difference of logits that rounding the adapters to this type may cause.
double most_difference_of_adapters(DType dtype) { return dtype == DType::f32 ? 1e-3 : 0.1; }

std::string peft_name(const std::string& module, const char* matrix) {
  return fmt::format("base_model.model.{}.{}.weight", module, matrix);
}

// Returns the fields of peft.LoraConfig as JSON. Those that are left out have PEFT's defaults.
std::string peft_config_text(const ModelConfig& model) {
  const LoraConfig& lora = model.lora;
  nlohmann::ordered_json config = {{"peft_type", "LORA"},
                                   {"task_type", "CAUSAL_LM"},
                                   {"base_model_name_or_path", nullptr},
                                   {"inference_mode", true},
                                   {"r", lora.rank},
                                   {"lora_alpha", lora.alpha},
                                   {"lora_dropout", 0.0},
                                   {"bias", "none"},
                                   {"fan_in_fan_out", model.family == Family::gpt2},
                                   {"target_modules", lora.products}};
  if (lora.alpha == std::floor(lora.alpha)) {
    config["lora_alpha"] = static_cast<std::int64_t>(lora.alpha);
  }
  return config.dump(2) + "\n";
}

// One tensor of the file.
struct PeftTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  const std::vector<float>* elements;
};

std::vector<PeftTensor> peft_tensors(const AdapterWeights& adapters) {
  const std::int64_t rank = adapters.model().lora.rank;
  std::vector<PeftTensor> tensors;
  for (const auto& [module, adapter] : adapters.all()) {
    tensors.push_back({peft_name(module, "lora_A"), {rank, adapter.in}, &adapter.a});
    tensors.push_back({peft_name(module, "lora_B"), {adapter.out, rank}, &adapter.b});
  }
  return tensors;
}

// Returns the number of bytes of all tensors.
std::int64_t write_adapters(const fs::path& path, const StepFolder& step,
                            const std::vector<PeftTensor>& tensors, DType dtype) {
  std::vector<SafetensorsEntry> entries;
  std::int64_t bytes = 0;
  for (const PeftTensor& tensor : tensors) {
    const std::int64_t end = bytes + std::ssize(*tensor.elements) * size_of(dtype);
    entries.push_back({tensor.name, dtype, tensor.shape, bytes, end});
    bytes = end;
  }
  std::string text = encode_safetensors_header(exported_metadata(step), entries, 8);
  for (const PeftTensor& tensor : tensors) {
    const std::int64_t count = std::ssize(*tensor.elements);
    std::vector<std::byte> data(static_cast<std::size_t>(count * size_of(dtype)));
    const std::int64_t at = narrow(tensor.elements->data(), count, dtype, data.data());
    if (at < count) {
      throw DataError(fmt::format("{}: element {} is too large for {}: export it as fp32 or bf16",
                                  tensor.name, at, "fp16"));
    }
    text.append(reinterpret_cast<const char*>(data.data()), data.size());
  }
  write_whole_file(path, text);
  return bytes;
}

// Reads weights of the base and adds the adapters in the file.
ReadWeight adapted_by_file(CheckpointWeights& base, const HfFiles& file, const LoraConfig& lora,
                           Family family) {
  return [&base, &file, &lora, family](const std::string& name) {
    std::vector<float> weight = base.read(name);
    const std::string module = name.substr(0, name.rfind('.'));
    const HfTensor* const found = file.find(peft_name(module, "lora_A"));
    if (found == nullptr || !name.ends_with(".weight")) {
      return weight;
    }
    std::vector<float> a(static_cast<std::size_t>(found->elements()));
    file.read(peft_name(module, "lora_A"), 0, std::ssize(a), a.data());
    std::vector<float> b(
        static_cast<std::size_t>(file.find(peft_name(module, "lora_B"))->elements()));
    file.read(peft_name(module, "lora_B"), 0, std::ssize(b), b.data());
    const auto rank = static_cast<std::size_t>(lora.rank);
    const std::size_t in = a.size() / rank;
    const std::size_t out = b.size() / rank;
    for (std::size_t o = 0; o < out; ++o) {
      for (std::size_t i = 0; i < in; ++i) {
        double sum = 0;
        for (std::size_t k = 0; k < rank; ++k) {
          sum += static_cast<double>(b[o * rank + k]) * static_cast<double>(a[k * in + i]);
        }
        float& element = weight[family == Family::gpt2 ? i * out + o : o * in + i];
        element = static_cast<float>(static_cast<double>(element) + lora.scale() * sum);
      }
    }
    return weight;
  };
}

LogitDifference compare_with_adapters(const fs::path& file, const StepFolder& step,
                                      const ModelConfig& model, const ExportOptions& options,
                                      const KeyOptions& keys) {
  CheckpointWeights base(*open_base(step, keys), Weights::latest);
  const HfFiles written(file);
  const ReadWeight read = adapted_by_file(base, written, model.lora, model.family);
  const LogitDifference difference =
      compare_logits(base.model(), {read}, step.path, keys, options.weights);
  check_difference(difference, most_difference_of_adapters(options.dtype.value_or(DType::f32)),
                   options.out.string());
  return difference;
}

}  // namespace

ExportResult export_to_peft(const ExportOptions& options, Communicator& world, StepKeys& keys) {
  const StepFolder step = open_step(options, world, keys);
  if (!has_adapters(*step.manifest)) {
    throw ConfigError(
        fmt::format("{} holds all weights and no adapters: export it with --format hf or gguf",
                    step.path.string()));
  }
  const ModelConfig model = model_from_fingerprint(*step.manifest->meta.config);
  const DType dtype = options.dtype.value_or(DType::f32);
  ExportResult result{.checkpoint = step.path,
                      .step = step.manifest->meta.step,
                      .parameters = trained_parameter_count(model),
                      .type_name = std::string(torch_name(dtype))};
  DraftFolder draft(world, options.out);
  run_on_root(world, [&]() -> std::string {
    const Stopwatch watch;
    const AdapterWeights adapters(step, model, options.weights);
    const std::vector<PeftTensor> tensors = peft_tensors(adapters);
    result.tensors = std::ssize(tensors);
    result.bytes = write_adapters(draft.path() / kAdapterName, step, tensors, dtype);
    write_whole_file(draft.path() / kAdapterConfigName, peft_config_text(model));
    result.seconds = watch.seconds();
    if (options.compare) {
      result.difference =
          compare_with_adapters(draft.path() / kAdapterName, step, model, options, keys.options());
    }
    finish_export(options, draft, step);
    return "";
  });
  return result;
}

}  // namespace trireme
