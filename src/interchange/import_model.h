// Makes a checkpoint from a model of Hugging Face's transformers. The checkpoint is the folder of
// one step, step 0, with the weights in fp32, without optimizer state. Beside the shards it keeps
// the files of the tokenizer and the fields of the configuration that an export returns.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "io/checkpoint/shard_file.h"
#include "io/checkpoint/step_keys.h"
#include "io/data/input_files.h"
#include "src/interchange/logit_check.h"

namespace trireme {

struct ImportOptions {
  std::filesystem::path source;
  std::filesystem::path out;
  std::int64_t shard_bytes = std::int64_t{1} << 30;  // weights in one shard, if they are several
  // The checkpoint gets the join of this label and of those in the files of the source.
  std::optional<Label> label = {};
  std::vector<std::string> classifications = default_classifications();  // from the lowest
  // Collective. Called with that join before any weight is read; throws what is against it.
  std::function<void(const std::optional<Label>& label)> admit = {};
  bool compare = true;  // whether logits are compared at the end
  ShardIo io = {};
  // Called on rank 0 with the folder of the whole checkpoint, before it gets its final name, and
  // the files of the source as they were before they were read; may add files and throw.
  std::function<void(const std::filesystem::path& folder, const std::vector<InputFile>& sources)>
      finish = {};
};

struct ImportResult {
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  std::int64_t source_bytes = 0;
  std::int64_t bytes = 0;         // of the checkpoint's shards
  std::int64_t padding_rows = 0;  // left out
  std::string model_type = {};
  ModelConfig model = {};
  DType dtype = DType::f32;  // of the source
  std::string warning = {};  // why the files of its tokenizer are of no use; or empty
  double seconds = 0;        // without the comparison
  LogitDifference difference = {};
};

// Collective. The shards, and their bytes, do not depend on the number of ranks. Encrypts the
// checkpoint if `keys` says so. Throws DataError for what is wrong with the source, and PolicyError
// if `out` exists or the labels have no join. After an error nothing is left.
ImportResult import_model(const ImportOptions& options, Communicator& world, StepKeys& keys);

}  // namespace trireme
