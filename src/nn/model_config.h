// ModelConfig describes the shape of a decoder-only transformer of the GPT-2 or the Llama family. A
// plain value, with the fields of Hugging Face's config.json under shorter names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/nn/frozen_modules.h"
#include "src/nn/lora_config.h"

namespace trireme {

enum class Family : std::uint8_t { gpt2, llama };

// name: "gpt2" or "llama". Throws ConfigError for anything else.
Family parse_family(std::string_view name);
std::string_view family_name(Family family);
// Returns the name of the token embedding's matrix, which is the output matrix, too, if the two are
// tied.
std::string_view token_matrix(Family family);
// Llama 3's stretching of the rotary frequencies ("rope_type": "llama3"); off if factor is 0.
struct RopeScaling {
  double factor = 0;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  std::int64_t original_context = 8192;
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

struct ModelConfig {
  Family family = Family::gpt2;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // 0 means heads
  std::int64_t head_dim = 0;  // 0 means hidden / heads
  std::int64_t ffn = 0;       // 0 means 4 x hidden (GPT-2 only)
  std::int64_t vocab = 0;
  std::int64_t context = 0;  // the longest sequence, and the number of learned positions
  bool tie_embeddings = true;
  bool qkv_bias = false;  // whether queries, keys and values have biases (Llama; GPT-2 always)
  bool alibi = false;     // ALiBi's bias instead of learned positions (GPT-2 only)
  bool swiglu = false;    // SwiGLU with biases instead of GELU (GPT-2; Llama always, without them)
  // Factors of the embedded tokens, of the logits, and of the products of queries and keys, as in
  // maximal update parametrization (Yang et al., 2022; GPT-2 only). 0: 1 / sqrt(head_dim).
  double embedding_scale = 1;
  double logit_scale = 1;
  double attention_scale = 0;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;  // rope_theta and rope_scaling: Llama only
  RopeScaling rope_scaling;
  double dropout = 0;            // of the embedding and of each residual branch, in training only
  double attention_dropout = 0;  // of attention's weights, in training only
  double initializer_range = 0.02;
  LoraConfig lora;       // adapters beside frozen weights, for fine-tuning
  FrozenModules frozen;  // weights that are not trained, without adapters

  // Replaces the zeros that stand for a default, and "all" in lora.products; brings those in order.
  void complete();
  // Throws a ConfigError that lists all contradictions with their formulas and numbers. The config
  // must be complete.
  void validate() const;
  // Throws ConfigError if a range in train.frozen ends beyond the last block. Apart from
  // validate(), because checkpoints of earlier versions may have such ranges.
  void check_frozen_ranges() const;

  // Returns whether some weights keep the values of another checkpoint, of which this model's
  // checkpoints hold no copy.
  bool has_frozen() const { return lora.is_on() || frozen.is_on(); }
  // Returns whether a parameter of this name is one of them.
  bool freezes(std::string_view parameter) const { return lora.is_on() || frozen.holds(parameter); }
  // Returns whether the embedding and the output matrix are one matrix that is trained.
  bool trains_tied_matrix() const { return tie_embeddings && !freezes(token_matrix(family)); }

  // Return what the family and its options imply.
  bool has_learned_positions() const { return family == Family::gpt2 && !alibi; }
  bool has_gated_mlp() const { return family == Family::llama || swiglu; }

  std::int64_t attention_width() const { return heads * head_dim; }
  // Returns the width of a token's packed queries, keys and values.
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// Returns the names of the products that adapters can fine-tune, in the order of a block. Each is
// the end of a module's name in Hugging Face's models, such as q_proj.
const std::vector<std::string>& lora_products(const ModelConfig& config);

}  // namespace trireme
