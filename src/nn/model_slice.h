// ModelSlice: the part of a model that a rank holds: a range of its residual layers (a pipeline
// stage), of each the tensor-parallel share of one rank; and what backward computes again instead
// of keeping. Pure values and functions.
#pragma once

#include <string>
#include <vector>

#include "src/nn/model_config.h"
#include "src/tensor/place.h"

namespace trireme {

// What a forward pass does not keep for backward, which makes it again, with the same bits.
struct Recompute {
  enum class Kind : std::uint8_t {
    none,
    selective,  // norms, GELU and SwiGLU, attention: what costs little beside its memory
    full        // all but the input of a block
  };
  Kind kind = Kind::none;
  std::int64_t every = 1;  // full: of blocks whose number is a multiple of it
  friend bool operator==(const Recompute&, const Recompute&) = default;
};

struct ModelSlice {
  // Residual layers [first, end) of 2 x layers: block i is layer 2i, attention, and 2i + 1, the
  // MLP. The embedding belongs to layer 0, the head to the last one.
  std::int64_t first = 0;
  std::int64_t end = 0;
  // The tensor-parallel group that shares these layers, and the part held here.
  int tensor_rank = 0;
  int tensor_ranks = 1;
  Recompute recompute;

  static ModelSlice whole(const ModelConfig& config) { return {0, 2 * config.layers, 0, 1, {}}; }
  bool embeds() const { return first == 0; }
  bool has_head(const ModelConfig& config) const { return end == 2 * config.layers; }
};

// The heads, channels and ids of one rank of a tensor-parallel group.
struct TensorShare {
  int rank = 0;
  IndexRange heads;
  IndexRange kv_heads;
  int kv_copies = 1;  // so many neighbouring ranks hold the same key-value heads
  IndexRange ffn;
  IndexRange vocabulary;
};
// Whether so many ranks can share the heads and all have some of the rest.
bool tensor_degree_works(const ModelConfig& config, std::int64_t ranks);
// ConfigError with the formula, the numbers and what would do, where they can't.
TensorShare tensor_share(const ModelConfig& config, int rank, int ranks);

}  // namespace trireme
