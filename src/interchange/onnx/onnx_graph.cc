#include "src/interchange/onnx/onnx_graph.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "src/interchange/onnx/graph_builder.h"
#include "src/nn/alibi.h"

namespace trireme {
namespace {

using Names = std::vector<std::string>;

// Returns by how many radians the pairs of channels turn from one position to the next: [D/2].
std::vector<float> turns_per_position(const ModelConfig& c) {
  const RopeScaling& s = c.rope_scaling;
  std::vector<float> turns;
  for (std::int64_t j = 0; j < c.head_dim / 2; ++j) {
    const double plain =
        std::pow(c.rope_theta, -2.0 * static_cast<double>(j) / static_cast<double>(c.head_dim));
    double scale = 1;
    if (s.factor != 0) {
      const double waves = static_cast<double>(s.original_context) * plain / (2 * std::numbers::pi);
      const double share = std::clamp(
          (waves - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor), 0.0, 1.0);
      scale = (1 - share) / s.factor + share;
    }
    turns.push_back(static_cast<float>(plain * scale));
  }
  return turns;
}

// ModelGraph adds the layers of one model to a builder. `x` is the stream [B,S,C] throughout.
class ModelGraph {
 public:
  ModelGraph(const ModelConfig& config, GraphBuilder& builder) : c_(config), b_(builder) {}

  void build();

 private:
  void positions_and_mask();
  void add_distances();
  std::string embedded();
  std::string gpt2_block(const std::string& x, const std::string& name);
  std::string llama_block(const std::string& x, const std::string& name);
  std::string layer_norm(const std::string& x, const std::string& name);
  std::string rms_norm(const std::string& x, const std::string& name);
  std::string product_and_bias(const std::string& x, const std::string& name, std::int64_t in,
                               std::int64_t out);
  std::string projected(const std::string& x, const std::string& name, std::int64_t out, bool bias);
  std::string rotated(const std::string& heads, const std::string& name);
  std::string attended(const std::string& q, const std::string& k, const std::string& v,
                       const std::string& name);
  std::string gelu(const std::string& x, const std::string& name);
  std::string swiglu(const std::string& gate, const std::string& up, const std::string& name);

  const ModelConfig& c_;
  GraphBuilder& b_;
};

void ModelGraph::positions_and_mask() {
  b_.node("Shape", {"input_ids"}, "shape");
  b_.node("Gather", {"shape", b_.integer("one", 1)}, "length");
  b_.node("Range", {b_.integer("zero", 0), "length", "one"}, "positions");
  b_.node("Unsqueeze", {"positions", b_.integers("axis_1", {1})}, "rows");
  b_.node("Unsqueeze", {"positions", b_.integers("axis_0", {0})}, "columns");
  b_.node("LessOrEqual", {"columns", "rows"}, "is_past");
  b_.node("Where",
          {"is_past", b_.real("allowed", 0),
           b_.real("forbidden", -std::numeric_limits<float>::infinity())},
          c_.alibi ? "causal" : "mask");
  if (c_.alibi) {
    add_distances();
  }
  if (c_.family == Family::llama) {
    const std::string frequencies =
        b_.reals("frequencies", {1, 1, 1, c_.head_dim / 2}, turns_per_position(c_));
    b_.node("Cast", {"positions"}, "positions_f32", {b_.to(OnnxType::f32)});
    b_.node("Reshape", {"positions_f32", b_.integers("by_position", {-1, 1, 1, 1})}, "turns");
    b_.node("Mul", {"turns", frequencies}, "angles");
    b_.node("Cos", {"angles"}, "cos");
    b_.node("Sin", {"angles"}, "sin");
  }
}

// Joins the mask [S,S] with ALiBi's bias: [K,G,S,S] for K heads of keys, each of G queries.
void ModelGraph::add_distances() {
  std::vector<float> slopes;
  for (std::int64_t head = 0; head < c_.heads; ++head) {
    slopes.push_back(alibi_slope(head, c_.heads));
  }
  b_.node("Cast", {"rows"}, "rows_f32", {b_.to(OnnxType::f32)});
  b_.node("Cast", {"columns"}, "columns_f32", {b_.to(OnnxType::f32)});
  b_.node("Sub", {"columns_f32", "rows_f32"}, "distances");
  b_.node("Mul",
          {"distances", b_.reals("slopes", {c_.kv_heads, c_.heads / c_.kv_heads, 1, 1}, slopes)},
          "bias");
  b_.node("Add", {"bias", "causal"}, "mask");
}

std::string ModelGraph::embedded() {
  const bool gpt2 = c_.family == Family::gpt2;
  const std::string table = gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight";
  std::string x = b_.widened(
      b_.node("Gather", {b_.stored(table, {c_.vocab, c_.hidden}), "input_ids"}, "tokens"));
  if (c_.has_learned_positions()) {
    const std::string places = b_.stored("transformer.wpe.weight", {c_.context, c_.hidden});
    x = b_.node("Add", {x, b_.widened(b_.node("Gather", {places, "positions"}, "places"))},
                "embedded");
  }
  if (c_.embedding_scale != 1) {
    const auto scale = static_cast<float>(c_.embedding_scale);
    x = b_.node("Mul", {x, b_.real("embedding_scale", scale)}, "scaled_embedding");
  }
  return x;
}

std::string ModelGraph::layer_norm(const std::string& x, const std::string& name) {
  return b_.node("LayerNormalization",
                 {x, b_.vector(name + ".weight", c_.hidden), b_.vector(name + ".bias", c_.hidden)},
                 name,
                 {{"axis", std::int64_t{-1}}, {"epsilon", static_cast<float>(c_.norm_epsilon)}});
}

std::string ModelGraph::rms_norm(const std::string& x, const std::string& name) {
  const std::string squares = b_.node("Mul", {x, x}, name + "/squares");
  const std::string mean =
      b_.node("ReduceMean", {squares}, name + "/mean",
              {{"axes", std::vector<std::int64_t>{-1}}, {"keepdims", std::int64_t{1}}});
  const std::string sum = b_.node(
      "Add", {mean, b_.real("epsilon", static_cast<float>(c_.norm_epsilon))}, name + "/sum");
  const std::string scale = b_.node("Sqrt", {sum}, name + "/scale");
  const std::string scaled = b_.node("Div", {x, scale}, name + "/scaled");
  return b_.node("Mul", {scaled, b_.vector(name + ".weight", c_.hidden)}, name);
}

// Multiplies by a matrix of GPT-2, which is stored as [in,out], and adds its bias.
std::string ModelGraph::product_and_bias(const std::string& x, const std::string& name,
                                         std::int64_t in, std::int64_t out) {
  const std::string w = b_.widened(b_.stored(name + ".weight", {in, out}));
  const std::string y = b_.node("MatMul", {x, w}, name + "/product");
  return b_.node("Add", {y, b_.vector(name + ".bias", out)}, name);
}

std::string ModelGraph::projected(const std::string& x, const std::string& name, std::int64_t out,
                                  bool bias) {
  const std::int64_t in = name.ends_with("o_proj")      ? c_.attention_width()
                          : name.ends_with("down_proj") ? c_.ffn
                                                        : c_.hidden;
  const std::string w = b_.widened(b_.transposed(name + ".weight", {out, in}));
  const std::string y = b_.node("MatMul", {x, w}, bias ? name + "/product" : name);
  return bias ? b_.node("Add", {y, b_.vector(name + ".bias", out)}, name) : y;
}

// heads: [B,S,H,D]. Channels j and j + D/2 are rotated together.
std::string ModelGraph::rotated(const std::string& heads, const std::string& name) {
  const std::int64_t half = c_.head_dim / 2;
  const std::string a = name + "/first";
  const std::string b = name + "/second";
  b_.nodes("Split", {heads, b_.integers("halves", {half, half})}, {a, b},
           {{"axis", std::int64_t{-1}}});
  // cos and sin are [S,1,1,D/2], and the halves [B,S,H,G,D/2].
  const auto times = [&](const std::string& part, const char* wave) {
    return b_.node("Mul", {part, wave}, part + "_" + wave);
  };
  const std::string turned_a = b_.node("Sub", {times(a, "cos"), times(b, "sin")}, a + "_turned");
  const std::string turned_b = b_.node("Add", {times(b, "cos"), times(a, "sin")}, b + "_turned");
  return b_.node("Concat", {turned_a, turned_b}, name + "/turned", {{"axis", std::int64_t{-1}}});
}

// q: [B,S,H*D]; k, v: [B,S,K*D] of K heads, each of which G = H/K queries share.
std::string ModelGraph::attended(const std::string& q, const std::string& k, const std::string& v,
                                 const std::string& name) {
  const std::int64_t shared = c_.heads / c_.kv_heads;
  const std::string q_shape =
      b_.integers("queries_shape", {0, 0, c_.kv_heads, shared, c_.head_dim});
  const std::string k_shape = b_.integers("keys_shape", {0, 0, c_.kv_heads, 1, c_.head_dim});
  std::string q5 = b_.node("Reshape", {q, q_shape}, name + "q");
  std::string k5 = b_.node("Reshape", {k, k_shape}, name + "k");
  const std::string v5 = b_.node("Reshape", {v, k_shape}, name + "v");
  if (c_.family == Family::llama) {
    q5 = rotated(q5, name + "q");
    k5 = rotated(k5, name + "k");
  }
  const auto moved = [&](const std::string& x, std::vector<std::int64_t> order, const char* end) {
    return b_.node("Transpose", {x}, name + end, {{"perm", std::move(order)}});
  };
  const std::string queries = moved(q5, {0, 2, 3, 1, 4}, "queries");  // [B,K,G,S,D]
  const std::string keys = moved(k5, {0, 2, 3, 4, 1}, "keys");        // [B,K,1,D,S]
  const std::string values = moved(v5, {0, 2, 3, 1, 4}, "values");    // [B,K,1,S,D]
  const auto scale =
      static_cast<float>(c_.attention_scale > 0 ? c_.attention_scale
                                                : 1 / std::sqrt(static_cast<double>(c_.head_dim)));
  const std::string scores = b_.node(
      "Mul", {b_.node("MatMul", {queries, keys}, name + "products"), b_.real("scale", scale)},
      name + "scores");
  const std::string masked = b_.node("Add", {scores, "mask"}, name + "masked");
  const std::string weights =
      b_.node("Softmax", {masked}, name + "weights", {{"axis", std::int64_t{-1}}});
  const std::string sums = b_.node("MatMul", {weights, values}, name + "sums");
  return b_.node("Reshape",
                 {moved(sums, {0, 3, 1, 2, 4}, "by_position"),
                  b_.integers("stream_shape", {0, 0, c_.attention_width()})},
                 name + "attended");
}

// Computes GELU by its approximation with tanh.
std::string ModelGraph::gelu(const std::string& x, const std::string& name) {
  const auto root = static_cast<float>(std::sqrt(2 / std::numbers::pi));
  const std::string square = b_.node("Mul", {x, x}, name + "square");
  const std::string cube = b_.node("Mul", {square, x}, name + "cube");
  const std::string part = b_.node("Mul", {cube, b_.real("cubic", 0.044715F)}, name + "part");
  const std::string sum = b_.node("Add", {x, part}, name + "sum");
  const std::string scaled = b_.node("Mul", {sum, b_.real("root", root)}, name + "scaled");
  const std::string bent = b_.node("Tanh", {scaled}, name + "tanh");
  const std::string gate = b_.node("Add", {bent, b_.real("unit", 1)}, name + "gate");
  const std::string half = b_.node("Mul", {x, b_.real("half", 0.5F)}, name + "half");
  return b_.node("Mul", {half, gate}, name + "gelu");
}

// Computes up silu(gate).
std::string ModelGraph::swiglu(const std::string& gate, const std::string& up,
                               const std::string& name) {
  const std::string slope = b_.node("Sigmoid", {gate}, name + "sigmoid");
  const std::string silu = b_.node("Mul", {gate, slope}, name + "silu");
  return b_.node("Mul", {silu, up}, name + "gated");
}

std::string ModelGraph::gpt2_block(const std::string& x, const std::string& name) {
  const std::int64_t c = c_.hidden;
  const std::string packed =
      product_and_bias(layer_norm(x, name + "ln_1"), name + "attn.c_attn", c, 3 * c);
  const Names parts = {name + "attn/q_flat", name + "attn/k_flat", name + "attn/v_flat"};
  b_.nodes("Split", {packed, b_.integers("thirds", {c, c, c})}, parts,
           {{"axis", std::int64_t{-1}}});
  const std::string heads = attended(parts[0], parts[1], parts[2], name + "attn/");
  const std::string y = b_.node("Add", {x, product_and_bias(heads, name + "attn.c_proj", c, c)},
                                name + "after_attention");
  const std::string normed = layer_norm(y, name + "ln_2");
  const std::string inner = product_and_bias(normed, name + "mlp.c_fc", c, c_.ffn);
  const std::string active =
      c_.swiglu
          ? swiglu(product_and_bias(normed, name + "mlp.c_fc2", c, c_.ffn), inner, name + "mlp/")
          : gelu(inner, name + "mlp/");
  const std::string branch = product_and_bias(active, name + "mlp.c_proj", c_.ffn, c);
  return b_.node("Add", {y, branch}, name + "stream");
}

std::string ModelGraph::llama_block(const std::string& x, const std::string& name) {
  const std::int64_t keys = c_.kv_heads * c_.head_dim;
  const std::string attention = name + "self_attn.";
  const std::string normed = rms_norm(x, name + "input_layernorm");
  const std::string q = projected(normed, attention + "q_proj", c_.attention_width(), c_.qkv_bias);
  const std::string k = projected(normed, attention + "k_proj", keys, c_.qkv_bias);
  const std::string v = projected(normed, attention + "v_proj", keys, c_.qkv_bias);
  const std::string heads = attended(q, k, v, name + "self_attn/");
  const std::string y =
      b_.node("Add", {x, projected(heads, attention + "o_proj", c_.hidden, false)},
              name + "after_attention");
  const std::string inner = rms_norm(y, name + "post_attention_layernorm");
  const std::string gate = projected(inner, name + "mlp.gate_proj", c_.ffn, false);
  const std::string up = projected(inner, name + "mlp.up_proj", c_.ffn, false);
  const std::string gated = swiglu(gate, up, name + "mlp/");
  return b_.node("Add", {y, projected(gated, name + "mlp.down_proj", c_.hidden, false)},
                 name + "stream");
}

void ModelGraph::build() {
  positions_and_mask();
  std::string x = embedded();
  const bool gpt2 = c_.family == Family::gpt2;
  for (std::int64_t i = 0; i < c_.layers; ++i) {
    x = gpt2 ? gpt2_block(x, fmt::format("transformer.h.{}.", i))
             : llama_block(x, fmt::format("model.layers.{}.", i));
  }
  x = gpt2 ? layer_norm(x, "transformer.ln_f") : rms_norm(x, "model.norm");
  const std::string table = gpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight";
  std::string head;
  if (c_.tie_embeddings) {
    head =
        b_.node("Transpose", {table}, "output_matrix", {{"perm", std::vector<std::int64_t>{1, 0}}});
  } else {
    head = b_.transposed("lm_head.weight", {c_.vocab, c_.hidden});
  }
  if (c_.logit_scale == 1) {
    b_.node("MatMul", {x, b_.widened(head)}, "logits");
    return;
  }
  b_.node("MatMul", {x, b_.widened(head)}, "unscaled_logits");
  b_.node("Mul", {"unscaled_logits", b_.real("logit_scale", static_cast<float>(c_.logit_scale))},
          "logits");
}

}  // namespace

OnnxGraph onnx_graph(const ModelConfig& config, OnnxType type, const std::string& data_file) {
  GraphBuilder builder(type, data_file);
  ModelGraph(config, builder).build();
  OnnxGraph graph = builder.take();
  graph.model.name = std::string(family_name(config.family));
  graph.model.inputs = {{"input_ids", OnnxType::i64, {"batch", "sequence"}}};
  graph.model.outputs = {{"logits", OnnxType::f32, {"batch", "sequence", config.vocab}}};
  graph.model.metadata = {{"context", std::to_string(config.context)}};
  return graph;
}

}  // namespace trireme
