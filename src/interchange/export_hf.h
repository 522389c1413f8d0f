// Writes a checkpoint's weights as a folder that from_pretrained() of Hugging Face's transformers
// loads: config.json, model.safetensors or several files with a list of them, and the files of the
// tokenizer if the checkpoint has them.
#pragma once

#include <filesystem>
#include <optional>

#include "io/checkpoint/step_keys.h"
#include "src/interchange/logit_check.h"

namespace trireme {

struct ExportOptions {
  std::filesystem::path checkpoint;  // the folder of a step, or of checkpoints: then the newest
  std::filesystem::path out;
  // f32, bf16 or f16. If empty: that of the files which were imported, or f32.
  std::optional<DType> dtype = {};
  std::int64_t file_bytes = 5'000'000'000;  // weights in one file, if they are several
  Weights weights = Weights::latest;
  bool compare = true;  // whether logits are compared at the end
  bool plain = false;   // whether an encrypted checkpoint may be written without encryption
};

struct ExportResult {
  std::filesystem::path checkpoint;  // the step's folder
  std::int64_t step = 0;
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;  // of the files with weights
  DType dtype = DType::f32;
  double seconds = 0;  // without the comparison
  LogitDifference difference = {};
};

// Collective. The files, and their bytes, do not depend on the number of ranks. Throws DataError if
// the checkpoint is damaged or a weight does not fit the type, and PolicyError if `out` exists, no
// key opens the checkpoint, or it is encrypted without options.plain. After an error nothing is
// left.
ExportResult export_to_hf(const ExportOptions& options, Communicator& world, StepKeys& keys);

}  // namespace trireme
