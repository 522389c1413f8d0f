// Says how the tensors of a model are named and laid out in GGUF files for llama.cpp, whose
// converters define it. Differences to Hugging Face's layout:
//
//   transposed   GPT-2's matrices in the blocks are [out,in] instead of [in,out]
//   pairs        in the matrices of queries and keys, rows 2j and 2j+1 of a head are the rows j and
//                j + D/2, because llama.cpp rotates neighbouring channels
//
// llama.cpp's architecture jais has neither factors of embeddings and logits, nor another scale of
// scores than 1 / head_dim, nor a tied output matrix: the factors go into the matrices, and the
// output matrix is always there.
//
// Pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/interchange/gguf.h"
#include "src/nn/model_tensors.h"

namespace trireme {

struct GgufPart {
  enum class Layout : std::uint8_t { same, transposed, pairs };
  std::string name;    // in the file
  ModelTensor source;  // in the model
  Layout layout = Layout::same;
  std::int64_t heads = 0;  // with pairs
  // The file holds the first `scaled` elements, in its own order, times the factor.
  float factor = 1;
  std::int64_t scaled = 0;
  bool is_tied_head = false;  // the embedding's second place, as output matrix
  std::vector<std::int64_t> shape() const;
};

// tensors: those of the model.
std::vector<GgufPart> gguf_parts(const ModelConfig& config,
                                 const std::vector<ModelTensor>& tensors);

// Sets `to` to the elements of a part in the file's order, from those in the model's. Both have the
// elements of part.source, and do not overlap.
void to_gguf_layout(const GgufPart& part, const float* from, float* to);
// Returns the elements of a part in the model's order, from those in the file's; a factor stays.
std::vector<float> from_gguf_layout(const GgufPart& part, std::vector<float> elements);

// Returns the type of a part in a file of this type: f32 for vectors and positions, and instead of
// a type whose blocks do not divide the rows, q8_0 or, if its blocks do not either, f16.
GgufType type_of_part(const GgufPart& part, GgufType type);

// Returns the model that llama.cpp makes of the file: its factors are those of the architecture.
ModelConfig gguf_model(const ModelConfig& config);
// Throws ConfigError if llama.cpp has no architecture for the model.
void check_gguf_model(const ModelConfig& config);

// Returns what the file says about the model, without its tokenizer.
std::map<std::string, GgufValue> gguf_values(const ModelConfig& config, const std::string& name,
                                             GgufType type);

// Returns by how much llama.cpp divides the rotary frequencies: [head_dim / 2].
std::vector<float> rope_divisors(const ModelConfig& config);

}  // namespace trireme
