// Llama (Touvron et al., 2023): RMSNorm, rotary positions, SwiGLU, grouped queries, no biases, or
// in models like Qwen2 (Yang et al., 2024) those of queries, keys and values.
// Matrices are stored [out,in], as in torch.nn.Linear; a tensor-parallel rank holds rows of the
// first matrices of a branch and columns of the last. Queries, keys and values are separate
// parameters, joined in the store so that one product computes all three.
#include "src/base/error.h"
#include "src/nn/attention.h"
#include "src/nn/mlp.h"
#include "src/nn/model_parts.h"
#include "src/nn/residual_layer.h"

namespace trireme {
namespace {

Linear linear_of(ParameterId weight, std::int64_t in, std::int64_t out) {
  Linear linear;
  linear.weight = weight;
  linear.in = in;
  linear.out = out;
  linear.transposed = true;
  return linear;
}

// Returns the place of the biases of some rows.
Place bias_of(const Place& rows) {
  Place place = Place::of_columns({rows.whole[0]}, {rows.rows});
  place.primary = rows.primary;
  return place;
}

class LlamaBuilder : public FamilyBuilder {
 public:
  LlamaBuilder(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store)
      : c_(config),
        declare_(config, slice, store),
        frequencies_(rope_frequencies(config, store.context())),
        lean_(slice.recompute.kind == Recompute::Kind::selective) {}

  ParameterId positions() override { return kNoParameter; }
  std::unique_ptr<Layer> attention_layer(std::int64_t block) override;
  std::unique_ptr<Layer> mlp_layer(std::int64_t block) override;
  Norm final_norm() override { return rms_norm("model.norm"); }

 private:
  std::string name(std::int64_t block) const { return fmt::format("model.layers.{}.", block); }
  ResidualDropout dropout(std::int64_t layer) const {
    return {static_cast<float>(c_.dropout), static_cast<std::uint32_t>(layer + 1)};
  }
  Norm rms_norm(const std::string& name);
  Place place_of_queries() const;
  Place place_of_keys() const;
  Linear project_qkv(const std::string& name);
  void adapt_attention(const std::string& name, const Place& output, Linear& attend, Linear& merge);

  const ModelConfig& c_;
  ParameterDeclarer declare_;
  Tensor frequencies_;
  bool lean_;
};

Norm LlamaBuilder::rms_norm(const std::string& name) {
  Norm norm;
  norm.weight = declare_.ones(name + ".weight", c_.hidden);
  norm.epsilon = static_cast<float>(c_.norm_epsilon);
  return norm;
}

Place LlamaBuilder::place_of_queries() const {
  return Place::of_rows({c_.attention_width(), c_.hidden}, declare_.query_rows());
}

Place LlamaBuilder::place_of_keys() const {
  Place keys = Place::of_rows({c_.kv_heads * c_.head_dim, c_.hidden}, declare_.key_rows());
  keys.primary = declare_.keeps_keys();
  return keys;
}

Linear LlamaBuilder::project_qkv(const std::string& name) {
  const Place queries = place_of_queries();
  const Place keys = place_of_keys();
  Linear linear = linear_of(declare_.matrix(name + "self_attn.q_proj.weight", queries), c_.hidden,
                            queries.rows.count + 2 * keys.rows.count);
  declare_.joined_matrix(name + "self_attn.k_proj.weight", keys);
  declare_.joined_matrix(name + "self_attn.v_proj.weight", keys);
  linear.weights = 3;
  if (c_.qkv_bias) {
    linear.bias = declare_.zeros(name + "self_attn.q_proj.bias", bias_of(queries));
    declare_.joined_zeros(name + "self_attn.k_proj.bias", bias_of(keys));
    declare_.joined_zeros(name + "self_attn.v_proj.bias", bias_of(keys));
    linear.biases = 3;
  }
  return linear;
}

void LlamaBuilder::adapt_attention(const std::string& name, const Place& output, Linear& attend,
                                   Linear& merge) {
  declare_.adapt(attend,
                 {{name + "self_attn.q_proj", "q_proj", place_of_queries()},
                  {name + "self_attn.k_proj", "k_proj", place_of_keys()},
                  {name + "self_attn.v_proj", "v_proj", place_of_keys()}},
                 true);
  declare_.adapt(merge, {{name + "self_attn.o_proj", "o_proj", output}}, false);
}

std::unique_ptr<Layer> LlamaBuilder::attention_layer(std::int64_t block) {
  const TensorShare& share = declare_.share();
  const Norm norm = rms_norm(name(block) + "input_layernorm");
  Linear attend = project_qkv(name(block));
  const Place output =
      Place::of_columns({c_.hidden, c_.attention_width()}, {declare_.query_rows()});
  Linear merge =
      linear_of(declare_.residual_matrix(name(block) + "self_attn.o_proj.weight", output),
                output.width(), c_.hidden);
  adapt_attention(name(block), output, attend, merge);
  const AttentionHeads heads{block,
                             share.heads.count,
                             share.kv_heads.count,
                             c_.head_dim,
                             share.kv_copies,
                             share.heads.first,
                             static_cast<float>(c_.attention_dropout),
                             static_cast<float>(c_.attention_scale)};
  return std::make_unique<ResidualLayer>(
      norm,
      std::make_unique<Attention>(heads, attend, merge, AttentionPositions{frequencies_, {}},
                                  lean_),
      dropout(2 * block), lean_);
}

std::unique_ptr<Layer> LlamaBuilder::mlp_layer(std::int64_t block) {
  const IndexRange ffn = declare_.share().ffn;
  const Norm norm = rms_norm(name(block) + "post_attention_layernorm");
  const Place entry = Place::of_rows({c_.ffn, c_.hidden}, ffn);
  const Place exit = Place::of_columns({c_.hidden, c_.ffn}, {ffn});
  const std::string mlp = name(block) + "mlp.";
  Linear gate = linear_of(declare_.matrix(mlp + "gate_proj.weight", entry), c_.hidden, ffn.count);
  Linear up = linear_of(declare_.matrix(mlp + "up_proj.weight", entry), c_.hidden, ffn.count);
  Linear down =
      linear_of(declare_.residual_matrix(mlp + "down_proj.weight", exit), ffn.count, c_.hidden);
  declare_.adapt(gate, {{mlp + "gate_proj", "gate_proj", entry}}, true);
  declare_.adapt(up, {{mlp + "up_proj", "up_proj", entry}}, true);
  declare_.adapt(down, {{mlp + "down_proj", "down_proj", exit}}, false);
  return std::make_unique<ResidualLayer>(norm, std::make_unique<SwigluMlp>(gate, up, down, lean_),
                                         dropout(2 * block + 1), lean_);
}

}  // namespace

std::unique_ptr<FamilyBuilder> llama_builder(const ModelConfig& config, const ModelSlice& slice,
                                             ParameterStore& store) {
  return std::make_unique<LlamaBuilder>(config, slice, store);
}

}  // namespace trireme
