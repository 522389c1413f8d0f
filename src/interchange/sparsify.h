// Makes a checkpoint with the weights of another one, of which many are zero: pruning by magnitude
// (pruning.h). Matrices inside the layers are pruned, each by itself; the output matrix on request;
// the embedding, positions, norms and biases never.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "src/policy/label.h"
#include "src/train/engine/training_state.h"

namespace trireme {

inline constexpr const char* kOutputProduct = "lm_head";

struct SparsifyOptions {
  std::filesystem::path checkpoint;  // the folder of a step, or of checkpoints: then the newest
  std::filesystem::path out = {};
  // Share of the zeros in each matrix, above 0 and below 1; if empty, the pattern 2:4.
  std::optional<double> sparsity = {};
  // As lora_products() names them, or "all" of them, and kOutputProduct.
  std::vector<std::string> products = {"all"};
  Weights weights = Weights::latest;
  // Called on all ranks with the source's label before anything is written; throws what keeps a
  // checkpoint with this label from being written. May be empty.
  std::function<void(const std::optional<Label>&)> admit = {};
  // Called on rank 0 with the folder of the whole checkpoint, before it gets its final name, and
  // the source; may add files and throw.
  std::function<void(const std::filesystem::path& folder, const StepFolder& base)> finish = {};
};

// SparsifiedProduct sums over the matrices of one product.
struct SparsifiedProduct {
  std::string name;
  std::int64_t matrices = 0;
  std::int64_t elements = 0;
  std::int64_t zeros = 0;
};

struct SparsifyResult {
  std::filesystem::path checkpoint;       // the source
  std::vector<std::string> skipped = {};  // on rank 0: why newer steps were skipped
  std::int64_t step = 0;                  // of the source
  std::vector<SparsifiedProduct> products;
  std::int64_t parameters = 0;  // of the model
  std::int64_t zeros = 0;       // among them
  std::int64_t bytes = 0;       // of the new shards
  double seconds = 0;
  std::string warning = {};  // what is missing in the new checkpoint; or empty
};

// Collective; a rank needs the memory of one matrix. The new checkpoint is the folder of one step,
// step 0, without optimizer state, encrypted if `keys` says so. It records the source. Steps that
// turn out damaged are skipped (intact_step.h). Throws ConfigError for products that the model does
// not have and if `out` lies in the source, PolicyError if `out` exists, and what open_weights()
// throws. After an error nothing is left.
SparsifyResult sparsify(const SparsifyOptions& options, Communicator& world, StepKeys& keys);

}  // namespace trireme
