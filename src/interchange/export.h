// What the exports of a checkpoint's weights share: options, results, and opening the checkpoint.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "src/interchange/checkpoint_weights.h"
#include "src/interchange/draft_folder.h"
#include "src/interchange/logit_check.h"
#include "src/interchange/training_tokenizer.h"

namespace trireme {

struct ExportOptions {
  std::filesystem::path checkpoint;  // the folder of a step, or of checkpoints: then the newest
  std::filesystem::path out;
  // For a folder of Hugging Face: f32, bf16 or f16. If empty: that of the files which were
  // imported, or f32.
  std::optional<DType> dtype = {};
  std::int64_t file_bytes = 5'000'000'000;  // weights in one file, if they are several
  Weights weights = Weights::latest;
  bool compare = true;  // whether logits are compared at the end
  bool plain = false;   // whether an encrypted checkpoint may be written without encryption
  // Called on rank 0 with the folder of the whole export, before it gets its final name; may add
  // files and throw.
  std::function<void(const std::filesystem::path& folder, const StepFolder& step)> finish = {};
};

struct ExportResult {
  std::filesystem::path checkpoint;  // the step's folder
  // On rank 0: why newer steps were skipped. Set by who chose the step (intact_step.h).
  std::vector<std::string> skipped = {};
  std::int64_t step = 0;
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;      // of the files with weights
  std::string type_name = {};  // of the weights: "bfloat16", or "q8_0"
  // Matrices that have another type, because their rows are not whole blocks (GGUF).
  std::map<std::string, std::int64_t> other_types = {};
  std::string warning = {};    // what is missing in the export; or empty
  std::string tokenizer = {};  // the one in the file (GGUF); or empty
  // Which tokenizer it is, if not that of the first weights; what readers of the file do otherwise
  // (GGUF).
  std::vector<std::string> notes = {};
  double seconds = 0;  // without the comparison
  LogitDifference difference = {};
};

// Collective. Returns the step to export, with its key. Throws NotFound, DataError or PolicyError
// on all ranks.
StepFolder open_step(const ExportOptions& options, Communicator& world, StepKeys& keys);
// Collective. Returns the weights of that step, with its adapters added if it has some.
CheckpointWeights open_weights(const ExportOptions& options, Communicator& world, StepKeys& keys);
// Copies the files of the model's tokenizer into an export, and says in the result what users have
// to know of them.
void carry_tokenizer(const ModelTokenizer& tokenizer, const std::filesystem::path& to,
                     ExportResult& result);
// Gives the export its final name, after options.finish. Called on rank 0.
void finish_export(const ExportOptions& options, DraftFolder& draft, const StepFolder& step);

}  // namespace trireme
