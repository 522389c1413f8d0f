// ModelSlice describes the part of a model that a rank holds: a range of its residual layers (a
// pipeline stage or chunk), of each the tensor-parallel share of one rank, and what backward
// computes again instead of keeping. Plain values and pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/nn/model_config.h"
#include "src/tensor/place.h"

namespace trireme {

// Recompute says what forward does not save for backward, which computes it again with the same
// bits.
struct Recompute {
  enum class Kind : std::uint8_t {
    none,
    selective,  // norms, GELU, SwiGLU and attention: cheap relative to their memory
    full        // everything but the input of a transformer block
  };
  Kind kind = Kind::none;
  std::int64_t every = 1;  // full: only blocks whose number is a multiple of it
  friend bool operator==(const Recompute&, const Recompute&) = default;
};

struct ModelSlice {
  // Residual layers [first, end) of 2 x layers: transformer block i consists of layer 2i,
  // attention, and layer 2i+1, the MLP. The embedding belongs to layer 0, the head to the last
  // layer.
  std::int64_t first = 0;
  std::int64_t end = 0;
  // This rank, and the size of the tensor-parallel group that shares these layers.
  int tensor_rank = 0;
  int tensor_ranks = 1;
  Recompute recompute;

  static ModelSlice whole(const ModelConfig& config) { return {0, 2 * config.layers, 0, 1, {}}; }
  bool embeds() const { return first == 0; }
  bool has_head(const ModelConfig& config) const { return end == 2 * config.layers; }
};

// TensorShare holds the heads, channels and ids of one rank of a tensor-parallel group.
struct TensorShare {
  int rank = 0;
  IndexRange heads;
  IndexRange kv_heads;
  int kv_copies = 1;  // number of neighbouring ranks that hold the same key-value heads
  IndexRange ffn;
  IndexRange vocabulary;
};
// Returns whether `ranks` ranks can divide the heads, channels and vocabulary.
bool tensor_degree_works(const ModelConfig& config, std::int64_t ranks);
// Returns the share of one rank. Throws a ConfigError, with the formula, the numbers and the
// degrees that work, if the ranks cannot divide the model.
TensorShare tensor_share(const ModelConfig& config, int rank, int ranks);

}  // namespace trireme
