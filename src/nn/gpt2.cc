// GPT-2 (Radford et al., 2019): LayerNorm, learned positions, GELU, biases; and models like Jais
// (Sengupta et al., 2023), with ALiBi instead of learned positions and SwiGLU, whose matrices have
// biases, too: y = c_proj(c_fc(x) silu(c_fc2(x))). The matrices of the
// transformer blocks are stored [in,out], as in Hugging Face's Conv1D; a tensor-parallel rank holds
// columns of the first matrix of a branch and rows of the second.
#include "src/base/error.h"
#include "src/nn/attention.h"
#include "src/nn/mlp.h"
#include "src/nn/model_parts.h"
#include "src/nn/residual_layer.h"

namespace trireme {
namespace {

class Gpt2Builder : public FamilyBuilder {
 public:
  Gpt2Builder(const ModelConfig& config, const ModelSlice& slice, ParameterStore& store)
      : c_(config),
        store_(store),
        declare_(config, slice, store),
        positions_(positions_of(config, declare_.share(), store)),
        lean_(slice.recompute.kind == Recompute::Kind::selective) {}

  ParameterId positions() override {
    return c_.has_learned_positions()
               ? declare_.common_matrix("transformer.wpe.weight", {c_.context, c_.hidden})
               : kNoParameter;
  }
  std::unique_ptr<Layer> attention_layer(std::int64_t block) override;
  std::unique_ptr<Layer> mlp_layer(std::int64_t block) override;
  Norm final_norm() override { return layer_norm("transformer.ln_f"); }

 private:
  static AttentionPositions positions_of(const ModelConfig& config, const TensorShare& share,
                                         ParameterStore& store) {
    return {{},
            config.alibi
                ? alibi_slopes(config, share.heads.first, share.heads.count, store.context())
                : Tensor()};
  }
  std::string name(std::int64_t block) const { return fmt::format("transformer.h.{}.", block); }
  ResidualDropout dropout(std::int64_t layer) const {
    return {static_cast<float>(c_.dropout), static_cast<std::uint32_t>(layer + 1)};
  }
  Norm layer_norm(const std::string& name);
  Linear columns_of(const std::string& name, std::int64_t out, std::vector<IndexRange> columns);
  Linear rows_of(const std::string& name, std::int64_t in, IndexRange rows);
  void adapt(Linear& linear, const std::string& module, const char* product, bool divides_out);

  std::unique_ptr<Branch> gated_mlp(const std::string& mlp);

  const ModelConfig& c_;
  ParameterStore& store_;
  ParameterDeclarer declare_;
  AttentionPositions positions_;
  bool lean_;
};

Norm Gpt2Builder::layer_norm(const std::string& name) {
  Norm norm;
  norm.weight = declare_.ones(name + ".weight", c_.hidden);
  norm.bias = declare_.zeros(name + ".bias", c_.hidden);
  norm.epsilon = static_cast<float>(c_.norm_epsilon);
  return norm;
}

// Declares a product from the stream to some columns of `out` channels.
Linear Gpt2Builder::columns_of(const std::string& name, std::int64_t out,
                               std::vector<IndexRange> columns) {
  const Place place = Place::of_columns({c_.hidden, out}, columns);
  Linear linear;
  linear.weight = declare_.matrix(name + ".weight", place);
  linear.bias = declare_.zeros(name + ".bias", Place::of_columns({out}, std::move(columns)));
  linear.in = c_.hidden;
  linear.out = place.width();
  return linear;
}

// Declares a product from some rows of `in` channels to the stream.
Linear Gpt2Builder::rows_of(const std::string& name, std::int64_t in, IndexRange rows) {
  Linear linear;
  linear.weight = declare_.residual_matrix(name + ".weight", Place::of_rows({in, c_.hidden}, rows));
  linear.bias = declare_.zeros(name + ".bias", c_.hidden);
  linear.adds_bias = declare_.share().rank == 0;
  linear.in = rows.count;
  linear.out = c_.hidden;
  return linear;
}

void Gpt2Builder::adapt(Linear& linear, const std::string& module, const char* product,
                        bool divides_out) {
  declare_.adapt(linear, {{module, product, store_[linear.weight].place}}, divides_out);
}

std::unique_ptr<Layer> Gpt2Builder::attention_layer(std::int64_t block) {
  const TensorShare& share = declare_.share();
  const Norm norm = layer_norm(name(block) + "ln_1");
  const std::string attention = name(block) + "attn.";
  Linear attend = columns_of(attention + "c_attn", c_.qkv_width(), declare_.packed_columns());
  Linear merge = rows_of(attention + "c_proj", c_.attention_width(), declare_.query_rows());
  adapt(attend, attention + "c_attn", "c_attn", true);
  adapt(merge, attention + "c_proj", "attn.c_proj", false);
  const AttentionHeads heads{block,
                             share.heads.count,
                             share.kv_heads.count,
                             c_.head_dim,
                             1,
                             share.heads.first,
                             static_cast<float>(c_.attention_dropout),
                             static_cast<float>(c_.attention_scale)};
  return std::make_unique<ResidualLayer>(
      norm, std::make_unique<Attention>(heads, attend, merge, positions_, lean_),
      dropout(2 * block), lean_);
}

std::unique_ptr<Branch> Gpt2Builder::gated_mlp(const std::string& mlp) {
  const IndexRange ffn = declare_.share().ffn;
  Linear up = columns_of(mlp + "c_fc", c_.ffn, {ffn});
  Linear gate = columns_of(mlp + "c_fc2", c_.ffn, {ffn});
  Linear project = rows_of(mlp + "c_proj", c_.ffn, ffn);
  adapt(up, mlp + "c_fc", "c_fc", true);
  adapt(gate, mlp + "c_fc2", "c_fc2", true);
  adapt(project, mlp + "c_proj", "mlp.c_proj", false);
  return std::make_unique<SwigluMlp>(gate, up, project, lean_);
}

std::unique_ptr<Layer> Gpt2Builder::mlp_layer(std::int64_t block) {
  const IndexRange ffn = declare_.share().ffn;
  const Norm norm = layer_norm(name(block) + "ln_2");
  const std::string mlp = name(block) + "mlp.";
  if (c_.swiglu) {
    return std::make_unique<ResidualLayer>(norm, gated_mlp(mlp), dropout(2 * block + 1), lean_);
  }
  Linear expand = columns_of(mlp + "c_fc", c_.ffn, {ffn});
  Linear project = rows_of(mlp + "c_proj", c_.ffn, ffn);
  adapt(expand, mlp + "c_fc", "c_fc", true);
  adapt(project, mlp + "c_proj", "mlp.c_proj", false);
  return std::make_unique<ResidualLayer>(norm, std::make_unique<GeluMlp>(expand, project, lean_),
                                         dropout(2 * block + 1), lean_);
}

}  // namespace

std::unique_ptr<FamilyBuilder> gpt2_builder(const ModelConfig& config, const ModelSlice& slice,
                                            ParameterStore& store) {
  return std::make_unique<Gpt2Builder>(config, slice, store);
}

}  // namespace trireme
