#include "src/interchange/import_model.h"

#include <nlohmann/json.hpp>

#include "mpi/agreement.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/stopwatch.h"
#include "src/interchange/carried_files.h"
#include "src/interchange/draft_folder.h"
#include "src/interchange/hf_model.h"
#include "src/interchange/hf_special_ids.h"
#include "src/interchange/new_checkpoint.h"
#include "src/interchange/source_state.h"
#include "src/interchange/tokenizer_fault.h"
#include "src/nn/model_size.h"
#include "src/train/run/model_fingerprint.h"
#include "src/train/saving/first_weights.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// A model in fp32 and the same one in double differ by roundings only.
constexpr double kMostDifference = 1e-3;

// Returns the ids with which the model's generation_config.json ends a text, or nothing if the
// model has no such file.
std::optional<nlohmann::json> ends_of_generation(const HfModel& model) {
  constexpr std::int64_t kMostGenerationConfigBytes = std::int64_t{1} << 20;
  const fs::path file = model.folder() / kGenerationConfigName;
  if (!fs::exists(file)) {
    return std::nullopt;
  }
  try {
    return *parse_generation_ends(read_file(file, kMostGenerationConfigBytes),
                                  model.config().model.vocab);
  } catch (const DataError& error) {
    throw data_error_in(file.string(), error);
  }
}

CheckpointMeta meta_of(const HfModel& model, const std::optional<Label>& label) {
  nlohmann::json config = model_fingerprint(model.config().model);
  const std::string_view word = model.dtype() == DType::bf16  ? "bf16"
                                : model.dtype() == DType::f16 ? "fp16"
                                                              : "fp32";
  config["train.precision"] = word;
  nlohmann::json extra = {{"imported",
                           {{"format", "huggingface"},
                            {"model_type", model.config().model_type},
                            {"precision", word},
                            {"special_ids", *model.config().special_ids}}}};
  if (std::optional<nlohmann::json> ends = ends_of_generation(model)) {
    extra["imported"][kGenerationEndsField] = std::move(*ends);
  }
  put_tokenizer({"imported", 0, ""}, extra);
  extra.erase("tokenizer_vocab");
  extra.erase("tokenizer_digest");
  CheckpointMeta meta;
  meta.config = JsonValue(std::move(config));
  meta.extra = JsonValue(std::move(extra));
  meta.label = label;
  return meta;
}

LogitDifference compare_with_source(const HfModel& model, const fs::path& folder,
                                    const KeyOptions& keys) {
  const ReadWeight read = [&](const std::string& name) { return model.read(name); };
  const LogitDifference difference =
      compare_logits(model.config().model, {read}, folder, keys, Weights::latest);
  check_difference(difference, kMostDifference, model.folder().string());
  return difference;
}

// Returns the files that an import of the model reads.
std::vector<InputFile> sources_of(const HfModel& model) {
  std::vector<fs::path> paths = model.paths();
  const std::vector<fs::path> carried = carried_files_in(model.folder());
  paths.insert(paths.end(), carried.begin(), carried.end());
  return find_input_files({paths.begin(), paths.end()}, {}, {}).files;
}

}  // namespace

ImportResult import_model(const ImportOptions& options, Communicator& world, StepKeys& keys) {
  check_outside(options.out, options.source, "is to be imported");
  const SourceState state(options.source);
  std::vector<InputFile> sources;  // on rank 0
  run_on_root(world, [&]() -> std::string {
    sources = sources_of(HfModel(options.source));
    return "";
  });
  const HfModel model(options.source);
  const std::optional<Label> label =
      join(options.label, model.label(options.classifications), options.classifications);
  if (options.admit) {
    options.admit(label);
  }
  const Stopwatch watch;
  DraftFolder draft(world, options.out);
  const std::shared_ptr<const FolderKey> key = keys.only_key();
  const MakeElements make = [&](const std::string& name, std::int64_t first, std::int64_t count,
                                float* to) { model.read(name, first, count, to); };
  std::vector<ShardTable> tables = write_new_shards(
      {model.tensors(), make, options.shard_bytes, data_key(key), options.io}, draft.path(), world);
  ImportResult result{.tensors = std::ssize(model.tensors()),
                      .parameters = parameter_count(model.config().model),
                      .source_bytes = model.file_bytes(),
                      .padding_rows = model.padding_rows(),
                      .model_type = model.config().model_type,
                      .model = model.config().model,
                      .dtype = model.dtype()};
  run_on_root(world, [&]() -> std::string {
    copy_carried_files(model.folder(), draft.path());
    if (const std::string fault = tokenizer_fault(draft.path(), result.model.vocab);
        !fault.empty()) {
      result.warning =
          "the files of the model's tokenizer were copied, but cannot be used: " + fault;
    }
    result.bytes = write_new_manifest(draft.path(), std::move(tables), meta_of(model, label),
                                      key.get(), options.io.read_back);
    result.seconds = watch.seconds();
    if (options.compare) {
      try {
        result.difference = compare_with_source(model, draft.path(), keys.options());
      } catch (const DataError&) {
        state.check_unchanged();
        throw;
      }
    }
    if (options.finish) {
      options.finish(draft.path(), sources);
    }
    state.check_unchanged();
    draft.keep();
    return "";
  });
  return result;
}

}  // namespace trireme
