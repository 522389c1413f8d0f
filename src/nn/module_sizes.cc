#include "src/nn/module_sizes.h"

namespace trireme {
namespace {

ModuleSizes gpt2_sizes(const ModelConfig& c) {
  const std::int64_t norm = 2 * c.hidden;
  const std::int64_t expand = (c.hidden + 1) * c.ffn;
  ModuleSizes sizes = {.before = {{"transformer.wte", c.vocab * c.hidden}},
                       .blocks = "transformer.h",
                       .attention = {{"ln_1", norm},
                                     {"attn.c_attn", (c.hidden + 1) * c.qkv_width()},
                                     {"attn.c_proj", (c.attention_width() + 1) * c.hidden}},
                       .mlp = {{"ln_2", norm}, {"mlp.c_fc", expand}},
                       .after = {{"transformer.ln_f", norm}}};
  if (c.has_learned_positions()) {
    sizes.before.push_back({"transformer.wpe", c.context * c.hidden});
  }
  if (c.swiglu) {
    sizes.mlp.push_back({"mlp.c_fc2", expand});
  }
  sizes.mlp.push_back({"mlp.c_proj", (c.ffn + 1) * c.hidden});
  return sizes;
}

ModuleSizes llama_sizes(const ModelConfig& c) {
  const std::int64_t rows = c.hidden + (c.qkv_bias ? 1 : 0);
  const std::int64_t keys = rows * c.kv_heads * c.head_dim;
  const std::int64_t matrix = c.hidden * c.ffn;
  return {.before = {{"model.embed_tokens", c.vocab * c.hidden}},
          .blocks = "model.layers",
          .attention = {{"input_layernorm", c.hidden},
                        {"self_attn.q_proj", rows * c.attention_width()},
                        {"self_attn.k_proj", keys},
                        {"self_attn.v_proj", keys},
                        {"self_attn.o_proj", c.attention_width() * c.hidden}},
          .mlp = {{"post_attention_layernorm", c.hidden},
                  {"mlp.gate_proj", matrix},
                  {"mlp.up_proj", matrix},
                  {"mlp.down_proj", matrix}},
          .after = {{"model.norm", c.hidden}}};
}

}  // namespace

ModuleSizes module_sizes(const ModelConfig& c) {
  ModuleSizes sizes = c.family == Family::gpt2 ? gpt2_sizes(c) : llama_sizes(c);
  if (!c.tie_embeddings) {
    sizes.after.push_back({"lm_head", c.vocab * c.hidden});
  }
  return sizes;
}

}  // namespace trireme
