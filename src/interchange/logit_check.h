// Compares the logits of a model in two formats, at the end of an import or export: those that the
// program's own layers and kernels compute in fp32 from the checkpoint, and those of the plain
// model (plain_model.h), or of a graph, from the foreign files. If the checkpoint does not fit into
// memory, the plain model computes both.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "src/interchange/plain_model.h"
#include "src/train/engine/training_state.h"

namespace trireme {

struct LogitDifference {
  std::int64_t positions = 0;
  double largest = 0;        // of all positions and tokens
  double largest_logit = 0;  // by magnitude, of the foreign files
  double relative = 0;       // root mean square of the differences over that of the logits
  bool same_choice = true;   // whether the most likely token is the same at every position
  bool by_kernels = false;   // whether the program's layers and kernels computed one side
};

// Reads the weights of foreign files.
struct ForeignWeights {
  ReadWeight read;
  RotaryPairs pairs = RotaryPairs::halves;
  // What they are the weights of, if that differs from the checkpoint's model in factors or in how
  // the output matrix is stored.
  std::optional<ModelConfig> model = std::nullopt;
};

// Computes the logits after each of some tokens, [ids, vocab], from foreign files.
using ForeignLogits = std::function<std::vector<double>(std::span<const std::int32_t> ids)>;

// checkpoint: the folder of one step.
LogitDifference compare_logits(const ModelConfig& config, const ForeignLogits& foreign,
                               const std::filesystem::path& checkpoint, const KeyOptions& keys,
                               Weights which);
// The same with the plain model on foreign weights.
LogitDifference compare_logits(const ModelConfig& config, const ForeignWeights& foreign,
                               const std::filesystem::path& checkpoint, const KeyOptions& keys,
                               Weights which);

// Throws DataError unless the relative difference is at most `most`. what: the files compared.
void check_difference(const LogitDifference& difference, double most, const std::string& what);

// Returns "logits at 16 positions differ by at most 1.2e-06 (largest logit 3.4)".
std::string describe(const LogitDifference& difference);

}  // namespace trireme
