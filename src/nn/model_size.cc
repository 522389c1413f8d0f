#include "src/nn/model_size.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace trireme {
namespace {

constexpr std::int64_t kMostLogits = std::int64_t{1} << 26;

std::int64_t gpt2_layer_parameters(const ModelConfig& c) {
  const std::int64_t norms = 4 * c.hidden;
  const std::int64_t attention =
      (c.hidden + 1) * c.qkv_width() + (c.attention_width() + 1) * c.hidden;
  const std::int64_t mlp = (c.hidden + 1) * c.ffn + (c.ffn + 1) * c.hidden;
  return norms + attention + mlp;
}

std::int64_t llama_layer_parameters(const ModelConfig& c) {
  return 2 * c.hidden + (c.hidden + (c.qkv_bias ? 1 : 0)) * c.qkv_width() +
         c.attention_width() * c.hidden + 3 * c.hidden * c.ffn;
}

}  // namespace

std::int64_t parameter_count(const ModelConfig& c) {
  const bool gpt2 = c.family == Family::gpt2;
  const std::int64_t embeddings = (c.vocab + (gpt2 ? c.context : 0)) * c.hidden;
  const std::int64_t layer = gpt2 ? gpt2_layer_parameters(c) : llama_layer_parameters(c);
  const std::int64_t head = (gpt2 ? 2 : 1) * c.hidden + (c.tie_embeddings ? 0 : c.vocab * c.hidden);
  return embeddings + c.layers * layer + head;
}

namespace {

// Returns the sum of the widths of a product's input and output, over the products with adapters.
std::int64_t adapted_widths(const ModelConfig& c) {
  const std::int64_t keys = c.kv_heads * c.head_dim;
  const std::map<std::string_view, std::int64_t> inner = {{"c_attn", c.qkv_width()},
                                                          {"attn.c_proj", c.attention_width()},
                                                          {"c_fc", c.ffn},
                                                          {"mlp.c_proj", c.ffn},
                                                          {"q_proj", c.attention_width()},
                                                          {"k_proj", keys},
                                                          {"v_proj", keys},
                                                          {"o_proj", c.attention_width()},
                                                          {"gate_proj", c.ffn},
                                                          {"up_proj", c.ffn},
                                                          {"down_proj", c.ffn}};
  std::int64_t widths = 0;
  for (const std::string& product : c.lora.products) {
    widths += c.hidden + inner.at(product);
  }
  return widths;
}

}  // namespace

std::int64_t trained_parameter_count(const ModelConfig& c) {
  return c.lora.is_on() ? c.layers * c.lora.rank * adapted_widths(c) : parameter_count(c);
}

double flops_per_token(const ModelConfig& c, std::int64_t sequence) {
  const double passes = c.lora.is_on() ? 4.0 : 6.0;
  const std::int64_t multiplied = parameter_count(c) - (c.tie_embeddings ? 0 : c.vocab * c.hidden);
  return passes * static_cast<double>(multiplied) + 6.0 * static_cast<double>(c.layers) *
                                                        static_cast<double>(c.attention_width()) *
                                                        static_cast<double>(sequence);
}

ForwardFlops forward_flops(const ModelConfig& c, std::int64_t sequence) {
  const std::int64_t heads = c.attention_width();
  const std::int64_t projections = 2 * c.hidden * (c.qkv_width() + heads);
  const std::int64_t matrices = c.family == Family::gpt2 ? 2 : 3;
  return {static_cast<double>(projections + 2 * heads * sequence),
          static_cast<double>(2 * matrices * c.hidden * c.ffn),
          static_cast<double>(2 * c.hidden * c.vocab)};
}

std::int64_t logits_rows(const ModelConfig& c) {
  return std::max<std::int64_t>(kMostLogits / c.vocab, 1);
}

}  // namespace trireme
