// GPT-2 (Radford et al., 2019): LayerNorm, learned positions, GELU, biases. Matrices of the blocks
// are stored [in,out], as Hugging Face's Conv1D does.
#include "src/nn/attention.h"
#include "src/nn/mlp.h"
#include "src/nn/model_parts.h"
#include "src/nn/residual_layer.h"

namespace trireme {
namespace {

Norm layer_norm(const ModelConfig& c, ParameterDeclarer& declare, const std::string& name) {
  Norm norm;
  norm.weight = declare.ones(name + ".weight", c.hidden);
  norm.bias = declare.zeros(name + ".bias", c.hidden);
  norm.epsilon = static_cast<float>(c.norm_epsilon);
  return norm;
}

Linear conv1d(ParameterDeclarer& declare, const std::string& name, std::int64_t in,
              std::int64_t out, bool into_residual) {
  Linear linear;
  linear.weight = into_residual ? declare.residual_matrix(name + ".weight", in, out)
                                : declare.matrix(name + ".weight", in, out);
  linear.bias = declare.zeros(name + ".bias", out);
  linear.in = in;
  linear.out = out;
  return linear;
}

void add_block(const ModelConfig& c, std::int64_t i, ParameterDeclarer& declare,
               std::vector<std::unique_ptr<Layer>>& layers) {
  const std::string name = fmt::format("transformer.h.{}.", i);
  const auto dropout = static_cast<float>(c.dropout);
  const auto site = static_cast<std::uint32_t>(2 * i + 1);

  const Norm norm_1 = layer_norm(c, declare, name + "ln_1");
  const Linear attend = conv1d(declare, name + "attn.c_attn", c.hidden, c.qkv_width(), false);
  const Linear merge = conv1d(declare, name + "attn.c_proj", c.attention_width(), c.hidden, true);
  auto attention = std::make_unique<Attention>(c, i, attend, merge, Tensor());
  layers.push_back(std::make_unique<ResidualLayer>(norm_1, std::move(attention),
                                                   ResidualDropout{dropout, site}));

  const Norm norm_2 = layer_norm(c, declare, name + "ln_2");
  const Linear expand = conv1d(declare, name + "mlp.c_fc", c.hidden, c.ffn, false);
  const Linear project = conv1d(declare, name + "mlp.c_proj", c.ffn, c.hidden, true);
  auto mlp = std::make_unique<GeluMlp>(expand, project);
  layers.push_back(
      std::make_unique<ResidualLayer>(norm_2, std::move(mlp), ResidualDropout{dropout, site + 1}));
}

}  // namespace

ModelParts build_gpt2(const ModelConfig& c, ParameterStore& store) {
  ParameterDeclarer declare(c, store);
  ModelParts parts;
  parts.embedding.token = declare.matrix("transformer.wte.weight", c.vocab, c.hidden);
  parts.embedding.position = declare.matrix("transformer.wpe.weight", c.context, c.hidden);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    add_block(c, i, declare, parts.layers);
  }
  parts.head.norm = layer_norm(c, declare, "transformer.ln_f");
  finish_parts(c, declare, parts);
  return parts;
}

}  // namespace trireme
