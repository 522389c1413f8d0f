#include "src/interchange/export_hf.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/checkpoint/exported_metadata.h"
#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/workers.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/stopwatch.h"
#include "src/interchange/checkpoint_weights.h"
#include "src/interchange/draft_folder.h"
#include "src/interchange/elements.h"
#include "src/interchange/hf_jais.h"
#include "src/interchange/hf_model.h"
#include "src/interchange/tokenizer_fault.h"
#include "src/interchange/training_tokenizer.h"
#include "src/nn/model_size.h"
#include "src/train/run/run_config.h"
#include "src/train/saving/first_weights.h"
#include "src/train/text/text_origin.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr const char* kJaisNote =
    "transformers has no class for model_type jais: to load the model there, copy the code of the "
    "published models (configuration_jais.py, modeling_jais.py) beside it and name it in auto_map";
constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 24;

// The relative difference of logits that the type of the weights may cause.
double most_difference(DType dtype) { return dtype == DType::f32 ? 1e-3 : 0.1; }

// One file of an export, with the tensors in it.
struct HfFile {
  std::string name;
  std::vector<const ModelTensor*> tensors;
  std::vector<float> slopes = {};  // ALiBi's, which the first file of a Jais holds
};

std::vector<HfFile> divide_files(const std::vector<ModelTensor>& tensors, DType dtype,
                                 std::int64_t most_bytes) {
  std::vector<HfFile> files;
  std::int64_t bytes = 0;
  for (const ModelTensor& tensor : tensors) {
    const std::int64_t more = tensor.shape.elements() * size_of(dtype);
    if (files.empty() || bytes + more > most_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    files.back().tensors.push_back(&tensor);
    bytes += more;
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    files[i].name = files.size() == 1
                        ? "model.safetensors"
                        : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, files.size());
  }
  return files;
}

// Converts in parallel. Throws DataError for an element that is too large for the type.
void narrow_all(const std::string& name, const std::vector<float>& from, std::int64_t count,
                DType dtype, std::byte* to) {
  const int threads = available_processors();
  parallel_for(threads, threads, [&](std::int64_t part) {
    const std::int64_t first = count * part / threads;
    const std::int64_t end = count * (part + 1) / threads;
    const std::int64_t at =
        narrow(from.data() + first, end - first, dtype, to + first * size_of(dtype));
    if (at < end - first) {
      throw DataError(fmt::format("tensor {}: {} is too large for {}: export it as fp32 or bf16",
                                  name, from[static_cast<std::size_t>(first + at)],
                                  torch_name(dtype)));
    }
  });
}

void write_weights(const fs::path& path, const HfFile& wanted, DType dtype,
                   CheckpointWeights& weights) {
  std::vector<SafetensorsEntry> entries;
  std::int64_t bytes = 0;
  for (const ModelTensor* tensor : wanted.tensors) {
    const std::int64_t end = bytes + tensor->shape.elements() * size_of(dtype);
    entries.push_back({tensor->name, dtype, tensor->shape.to_vector(), bytes, end});
    bytes = end;
  }
  if (const std::int64_t heads = std::ssize(wanted.slopes); heads > 0) {
    const std::int64_t end = bytes + heads * size_of(dtype);
    entries.push_back({kJaisSlopes, dtype, {heads, 1}, bytes, end});
    bytes = end;
  }
  const std::string head = encode_safetensors_header(exported_metadata(weights.step()), entries, 8);
  File file = File::create_new(path);
  file.reserve(std::ssize(head) + bytes);
  file.write(head.data(), std::ssize(head));
  std::vector<float> elements;
  std::vector<std::byte> narrowed;
  for (const ModelTensor* tensor : wanted.tensors) {
    const std::int64_t all = tensor->shape.elements();
    for (std::int64_t first = 0; first < all; first += kElementsAtOnce) {
      const std::int64_t count = std::min(kElementsAtOnce, all - first);
      elements.resize(static_cast<std::size_t>(count));
      weights.read(*tensor, first, count, elements.data());
      if (dtype == DType::f32) {
        file.write(elements.data(), count * size_of(dtype));
        continue;
      }
      narrowed.resize(static_cast<std::size_t>(count * size_of(dtype)));
      narrow_all(tensor->name, elements, count, dtype, narrowed.data());
      file.write(narrowed.data(), std::ssize(narrowed));
    }
  }
  narrowed.resize(wanted.slopes.size() * static_cast<std::size_t>(size_of(dtype)));
  narrow_all(kJaisSlopes, wanted.slopes, std::ssize(wanted.slopes), dtype, narrowed.data());
  file.write(narrowed.data(), std::ssize(narrowed));
  file.sync();
  file.close();
}

std::string list_text(const std::vector<HfFile>& files, std::int64_t bytes) {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (const HfFile& file : files) {
    for (const ModelTensor* tensor : file.tensors) {
      map[tensor->name] = file.name;
    }
    if (!file.slopes.empty()) {
      map[kJaisSlopes] = file.name;
    }
  }
  const nlohmann::ordered_json list = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  return list.dump(2) + "\n";
}

// Returns what an import kept of the model, or of that with which the run began, or an empty
// object.
const nlohmann::json& imported_part(const Manifest& manifest) {
  static const nlohmann::json nothing = nlohmann::json::object();
  const nlohmann::json& extra = *manifest.meta.extra;
  if (extra.contains("imported")) {
    return object_field(extra, "imported");
  }
  return extra.contains(kFirstWeightsField)
             ? object_field(object_field(extra, kFirstWeightsField), "imported")
             : nothing;
}

HfConfig config_of(const CheckpointWeights& weights, const ModelTokenizer& tokenizer) {
  HfConfig config{.model_type = {}, .model = weights.model(), .special_ids = {}};
  const nlohmann::json& imported = imported_part(*weights.origin().manifest);
  if (imported.contains("model_type")) {
    config.model_type = text_field(imported, "model_type");
  }
  if (imported.contains("special_ids") && !tokenizer.is_changed) {
    config.special_ids = JsonValue(object_field(imported, "special_ids"));
  } else if (tokenizer.end_of_document) {
    // In training, this token stands between documents: before each and after each.
    const std::int32_t end = *tokenizer.end_of_document;
    config.special_ids = JsonValue({{"bos_token_id", end}, {"eos_token_id", end}});
  }
  return config;
}

// Says so if the model has learned to end documents with a token that is no end in its files, which
// are those of the model with which its run began. Returns "" otherwise.
std::string note_on_end(const CheckpointWeights& weights, const ModelTokenizer& tokenizer) {
  const TextOrigin origin = text_origin_of(weights.step(), weights.base(), weights.model().vocab);
  const bool is_other =
      !tokenizer.is_changed && tokenizer.end_of_document && !origin.has_no_other_ends &&
      std::ranges::find(origin.ends, *tokenizer.end_of_document) == origin.ends.end() &&
      imported_part(*weights.origin().manifest).contains("special_ids");
  return is_other ? fmt::format(
                        "the documents of its dataset ended with the token {}, which is not "
                        "in eos_token_id: transformers does not stop there",
                        *tokenizer.end_of_document)
                  : "";
}

DType chosen_dtype(const Manifest& manifest, std::optional<DType> asked) {
  const nlohmann::json& imported = imported_part(manifest);
  if (asked || !imported.contains("precision")) {
    return asked.value_or(DType::f32);
  }
  return dtype_of_precision(text_field(imported, "precision")).value_or(DType::f32);
}

LogitDifference compare_with_export(const fs::path& folder, const ExportOptions& options,
                                    const StepFolder& step, const KeyOptions& keys, DType dtype) {
  const HfModel written(folder);  // read back as any foreign model
  const ReadWeight read = [&](const std::string& name) { return written.read(name); };
  const LogitDifference difference =
      compare_logits(written.config().model, {read}, step.path, keys, options.weights);
  check_difference(difference, most_difference(dtype), options.out.string());
  return difference;
}

}  // namespace

ExportResult export_to_hf(const ExportOptions& options, Communicator& world, StepKeys& keys) {
  CheckpointWeights weights = open_weights(options, world, keys);
  check_hf_scales(weights.model());
  const StepFolder& step = weights.step();
  const DType dtype = chosen_dtype(*weights.origin().manifest, options.dtype);
  ExportResult result{.checkpoint = step.path,
                      .step = step.manifest->meta.step,
                      .tensors = std::ssize(weights.tensors()),
                      .parameters = parameter_count(weights.model()),
                      .type_name = std::string(torch_name(dtype))};
  result.bytes = result.parameters * size_of(dtype);
  const Stopwatch watch;
  DraftFolder draft(world, options.out);
  std::vector<HfFile> files = divide_files(weights.tensors(), dtype, options.file_bytes);
  if (weights.model().alibi) {
    files.front().slopes = jais_slopes(weights.model());
    result.bytes += weights.model().heads * size_of(dtype);
  }
  share_work(world, std::ssize(files), [&](std::int64_t i) {
    const HfFile& file = files[static_cast<std::size_t>(i)];
    write_weights(draft.path() / file.name, file, dtype, weights);
  });
  run_on_root(world, [&]() -> std::string {
    const ModelTokenizer tokenizer = find_model_tokenizer(weights);
    const HfConfig config = config_of(weights, tokenizer);
    write_whole_file(draft.path() / "config.json", hf_config_text(config, dtype));
    if (files.size() > 1) {
      write_whole_file(draft.path() / "model.safetensors.index.json",
                       list_text(files, result.bytes));
    }
    carry_tokenizer(tokenizer, draft.path(), result);
    if (weights.model().family == Family::gpt2 && !is_plain_gpt2(weights.model())) {
      result.notes.emplace_back(kJaisNote);
    }
    if (std::string note = note_on_end(weights, tokenizer); !note.empty()) {
      result.notes.push_back(std::move(note));
    }
    if (const std::string fault = tokenizer_fault(draft.path(), weights.model().vocab);
        result.warning.empty() && !fault.empty()) {
      result.warning =
          "the files of the model's tokenizer were copied, but cannot be used: " + fault;
    }
    result.seconds = watch.seconds();
    if (options.compare) {
      result.difference = compare_with_export(draft.path(), options, step, keys.options(), dtype);
    }
    finish_export(options, draft, step);
    return "";
  });
  return result;
}

}  // namespace trireme
