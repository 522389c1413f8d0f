// Llama (Touvron et al., 2023): RMSNorm, rotary positions, SwiGLU, grouped queries, no biases.
// Matrices are stored [out,in], as torch.nn.Linear does. Queries, keys and values are parameters of
// their own, joined in the store so that one product makes all three.
#include "src/nn/attention.h"
#include "src/nn/mlp.h"
#include "src/nn/model_parts.h"
#include "src/nn/residual_layer.h"

namespace trireme {
namespace {

Norm rms_norm(const ModelConfig& c, ParameterDeclarer& declare, const std::string& name) {
  Norm norm;
  norm.weight = declare.ones(name + ".weight", c.hidden);
  norm.epsilon = static_cast<float>(c.norm_epsilon);
  return norm;
}

Linear linear_of(ParameterId weight, std::int64_t in, std::int64_t out) {
  Linear linear;
  linear.weight = weight;
  linear.in = in;
  linear.out = out;
  linear.transposed = true;
  return linear;
}

Linear project_qkv(const ModelConfig& c, ParameterDeclarer& declare, const std::string& name) {
  const std::int64_t kv_width = c.kv_heads * c.head_dim;
  Linear linear =
      linear_of(declare.matrix(name + "self_attn.q_proj.weight", c.attention_width(), c.hidden),
                c.hidden, c.qkv_width());
  declare.joined_matrix(name + "self_attn.k_proj.weight", kv_width, c.hidden);
  declare.joined_matrix(name + "self_attn.v_proj.weight", kv_width, c.hidden);
  linear.weights = 3;
  return linear;
}

std::unique_ptr<Branch> build_mlp(const ModelConfig& c, ParameterDeclarer& declare,
                                  const std::string& name) {
  const ParameterId gate = declare.matrix(name + "mlp.gate_proj.weight", c.ffn, c.hidden);
  const ParameterId up = declare.matrix(name + "mlp.up_proj.weight", c.ffn, c.hidden);
  const ParameterId down = declare.residual_matrix(name + "mlp.down_proj.weight", c.hidden, c.ffn);
  return std::make_unique<SwigluMlp>(linear_of(gate, c.hidden, c.ffn),
                                     linear_of(up, c.hidden, c.ffn),
                                     linear_of(down, c.ffn, c.hidden));
}

void add_block(const ModelConfig& c, std::int64_t i, const Tensor& frequencies,
               ParameterDeclarer& declare, std::vector<std::unique_ptr<Layer>>& layers) {
  const std::string name = fmt::format("model.layers.{}.", i);
  const auto dropout = static_cast<float>(c.dropout);
  const auto site = static_cast<std::uint32_t>(2 * i + 1);

  const Norm norm_1 = rms_norm(c, declare, name + "input_layernorm");
  const Linear attend = project_qkv(c, declare, name);
  const Linear merge = linear_of(
      declare.residual_matrix(name + "self_attn.o_proj.weight", c.hidden, c.attention_width()),
      c.attention_width(), c.hidden);
  auto attention = std::make_unique<Attention>(c, i, attend, merge, frequencies);
  layers.push_back(std::make_unique<ResidualLayer>(norm_1, std::move(attention),
                                                   ResidualDropout{dropout, site}));

  const Norm norm_2 = rms_norm(c, declare, name + "post_attention_layernorm");
  layers.push_back(std::make_unique<ResidualLayer>(norm_2, build_mlp(c, declare, name),
                                                   ResidualDropout{dropout, site + 1}));
}

}  // namespace

ModelParts build_llama(const ModelConfig& c, ParameterStore& store) {
  ParameterDeclarer declare(c, store);
  ModelParts parts;
  parts.embedding.token = declare.matrix("model.embed_tokens.weight", c.vocab, c.hidden);
  const Tensor frequencies = rope_frequencies(c, store.pool());
  for (std::int64_t i = 0; i < c.layers; ++i) {
    add_block(c, i, frequencies, declare, parts.layers);
  }
  parts.head.norm = rms_norm(c, declare, "model.norm");
  finish_parts(c, declare, parts);
  return parts;
}

}  // namespace trireme
