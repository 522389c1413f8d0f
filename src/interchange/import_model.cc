#include "src/interchange/import_model.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/checkpoint/load/load_step.h"
#include "io/checkpoint/streamed_shard.h"
#include "mpi/agreement.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/interchange/carried_files.h"
#include "src/interchange/draft_folder.h"
#include "src/interchange/hf_model.h"
#include "src/nn/model_size.h"
#include "src/train/run/fingerprint.h"
#include "src/train/start/tokenizer_identity.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using Shards = std::vector<std::vector<StreamedTensor>>;

// A model in fp32 and the same one in double differ by roundings only.
constexpr double kMostDifference = 1e-3;

// Divides the tensors among shards, in the order of their names.
Shards divide(const HfModel& model, std::int64_t shard_bytes) {
  Shards shards;
  std::int64_t bytes = 0;
  for (const ModelTensor& tensor : model.tensors()) {
    const std::int64_t more = tensor.shape.elements() * size_of(DType::f32);
    if (shards.empty() || bytes + more > shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back({tensor.name, tensor.shape});
    bytes += more;
  }
  return shards;
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
  put_tokenizer({"imported", 0, ""}, extra);
  extra.erase("tokenizer_vocab");
  extra.erase("tokenizer_digest");
  CheckpointMeta meta;
  meta.config = JsonValue(std::move(config));
  meta.extra = JsonValue(std::move(extra));
  meta.label = label;
  return meta;
}

// Collective. Writes the shards and returns their tables on all ranks, in the order of the shards.
std::vector<ShardTable> write_shards(const HfModel& model, const fs::path& folder,
                                     const ImportOptions& options, Communicator& world,
                                     const DataKey* key) {
  const Shards shards = divide(model, options.shard_bytes);
  const MakeElements make = [&](const std::string& name, std::int64_t first, std::int64_t count,
                                float* to) { model.read(name, first, count, to); };
  std::string own;
  share_work(world, std::ssize(shards), [&](std::int64_t i) {
    own += to_text(write_streamed_shard(folder, i, shards[static_cast<std::size_t>(i)], make, key,
                                        options.io)) +
           '\0';
  });
  std::vector<ShardTable> tables(shards.size());
  const std::vector<std::string> texts = all_gather_text(world, own);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::size_t at = 0;
    for (std::size_t i = rank; i < shards.size(); i += texts.size()) {
      const std::size_t end = texts[rank].find('\0', at);
      tables[i] =
          parse_shard_table(std::string_view(texts[rank]).substr(at, end - at), "a rank's table");
      at = end + 1;
    }
  }
  return tables;
}

// Writes the manifest and the wrapped key, on rank 0. Returns the number of bytes of all shards.
std::int64_t write_manifest(const fs::path& folder, std::vector<ShardTable> tables,
                            const CheckpointMeta& meta, const FolderKey* key, bool read_back) {
  Manifest manifest;
  manifest.software = "trireme";
  manifest.created = utc_now();
  manifest.read_back = read_back;
  manifest.meta = meta;
  manifest.data_key = key == nullptr ? "" : key->key.id();
  merge_tables(std::move(tables), manifest);
  const std::string text = to_text(manifest);
  const Manifest read = parse_manifest(text, "the new manifest");
  if (key != nullptr) {
    write_whole_file(folder / kKeysFileName, keys_text(*key, read.seal));
  }
  write_whole_file(folder / kManifestName, text);
  return manifest.bytes();
}

LogitDifference compare_with_source(const HfModel& model, const fs::path& folder,
                                    const KeyOptions& keys) {
  const ReadWeight read = [&](const std::string& name) { return model.read(name); };
  const LogitDifference difference =
      compare_logits(model.config().model, {read}, folder, keys, Weights::latest);
  check_difference(difference, kMostDifference, model.folder().string());
  return difference;
}

}  // namespace

ImportResult import_model(const ImportOptions& options, Communicator& world, StepKeys& keys) {
  run_on_root(world, [&] { return std::to_string(HfModel(options.source).tensors().size()); });
  const HfModel model(options.source);
  const Stopwatch watch;
  DraftFolder draft(world, options.out);
  std::shared_ptr<const FolderKey> key;
  if (keys.encrypts()) {
    keys.prepare_to_save();
    key = keys.next();
  }
  std::vector<ShardTable> tables = write_shards(model, draft.path(), options, world, data_key(key));
  ImportResult result{.tensors = std::ssize(model.tensors()),
                      .parameters = parameter_count(model.config().model),
                      .source_bytes = model.file_bytes(),
                      .padding_rows = model.padding_rows(),
                      .model_type = model.config().model_type,
                      .dtype = model.dtype()};
  run_on_root(world, [&]() -> std::string {
    copy_carried_files(model.folder(), draft.path());
    result.bytes = write_manifest(draft.path(), std::move(tables), meta_of(model, options.label),
                                  key.get(), options.io.read_back);
    result.seconds = watch.seconds();
    if (options.compare) {
      result.difference = compare_with_source(model, draft.path(), keys.options());
    }
    draft.keep();
    return "";
  });
  return result;
}

}  // namespace trireme
