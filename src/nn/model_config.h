// ModelConfig: what a decoder-only transformer of the GPT-2 or the Llama family looks like. A plain
// value; the same fields as Hugging Face's config.json under shorter names.
#pragma once

#include <cstdint>
#include <string_view>

namespace trireme {

enum class Family : std::uint8_t { gpt2, llama };

// "gpt2" or "llama"; ConfigError for another word.
Family parse_family(std::string_view name);
std::string_view family_name(Family family);

// Llama 3's stretching of the rotary frequencies ("rope_type": "llama3"). Off while factor is 0.
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
  std::int64_t kv_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  std::int64_t ffn = 0;       // 0: 4 x hidden (GPT-2 only)
  std::int64_t vocab = 0;
  std::int64_t context = 0;  // the longest sequence; GPT-2 has as many learned positions
  bool tie_embeddings = true;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;  // Llama only, as the next
  RopeScaling rope_scaling;
  double dropout = 0;            // of the embedding and of each residual branch, while training
  double attention_dropout = 0;  // of attention's weights, while training
  double initializer_range = 0.02;

  // Fills in what 0 stands for.
  void complete();
  // ConfigError that names every contradiction with its formula and numbers. Of a complete config.
  void validate() const;

  std::int64_t attention_width() const { return heads * head_dim; }
  // The width of the packed queries, keys and values of a token.
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_dim; }
  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

}  // namespace trireme
