#include "src/nn/model_size.h"

#include <algorithm>

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
  return 2 * c.hidden + c.hidden * c.qkv_width() + c.attention_width() * c.hidden +
         3 * c.hidden * c.ffn;
}

// PerToken counts elements per token, in the compute type and in f32.
struct PerToken {
  std::int64_t compute = 0;
  std::int64_t f32 = 0;
  std::int64_t bytes(DType dtype) const { return compute * size_of(dtype) + 4 * f32; }
};

// Counts the statistics per row of a norm: rstd, and for LayerNorm the mean.
std::int64_t norm_statistics(const ModelConfig& c) { return c.family == Family::gpt2 ? 2 : 1; }

// Counts the stream, its norm, packed queries, keys and values, and the heads' output; and the
// statistics and lse.
PerToken saved_by_attention(const ModelConfig& c) {
  return {2 * c.hidden + c.qkv_width() + c.attention_width(), norm_statistics(c) + c.heads};
}

// Counts the stream, its norm, and the values before and after GELU, or gate, up and their product.
PerToken saved_by_mlp(const ModelConfig& c) {
  const std::int64_t inner = c.family == Family::gpt2 ? 2 * c.ffn : 3 * c.ffn;
  return {2 * c.hidden + inner, norm_statistics(c)};
}

// Counts the stream and its norm, which their gradients overwrite, and one loss per token. Logits
// are not included.
PerToken head_workspace(const ModelConfig& c) { return {2 * c.hidden, norm_statistics(c) + 1}; }

// Counts the stream's gradient (and its copy with dropout); for SwiGLU, also the gradients of gate
// and up, and the f32 sum of their two products unless the compute type is f32.
PerToken mlp_workspace(const ModelConfig& c, DType compute) {
  PerToken w{c.hidden + (c.dropout > 0 ? c.hidden : 0), 0};
  if (c.family == Family::llama) {
    w.compute += 2 * c.ffn;
    w.f32 += compute == DType::f32 ? 0 : c.hidden;
  }
  return w;
}

// Counts the gradients of the stream (and its copy with dropout), of the heads' output, and of the
// packed queries, keys and values.
PerToken attention_workspace(const ModelConfig& c) {
  return {c.hidden + (c.dropout > 0 ? c.hidden : 0) + c.attention_width() + c.qkv_width(), 0};
}

}  // namespace

std::int64_t parameter_count(const ModelConfig& c) {
  const bool gpt2 = c.family == Family::gpt2;
  const std::int64_t embeddings = (c.vocab + (gpt2 ? c.context : 0)) * c.hidden;
  const std::int64_t layer = gpt2 ? gpt2_layer_parameters(c) : llama_layer_parameters(c);
  const std::int64_t head = (gpt2 ? 2 : 1) * c.hidden + (c.tie_embeddings ? 0 : c.vocab * c.hidden);
  return embeddings + c.layers * layer + head;
}

double flops_per_token(const ModelConfig& c, std::int64_t sequence) {
  const std::int64_t multiplied = parameter_count(c) - (c.tie_embeddings ? 0 : c.vocab * c.hidden);
  return 6.0 * static_cast<double>(multiplied) + 6.0 * static_cast<double>(c.layers) *
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

std::int64_t saved_bytes(const ModelConfig& c, std::int64_t micro_batch, std::int64_t sequence,
                         DType compute) {
  return micro_batch * sequence * c.layers *
         (saved_by_attention(c).bytes(compute) + saved_by_mlp(c).bytes(compute));
}

std::int64_t activation_bytes(const ModelConfig& c, std::int64_t micro_batch, std::int64_t sequence,
                              DType compute) {
  const std::int64_t rows = micro_batch * sequence;
  const std::int64_t head = rows * head_workspace(c).bytes(compute) +
                            std::min(logits_rows(c), rows) * c.vocab * size_of(compute);
  const std::int64_t mlp = rows * mlp_workspace(c, compute).bytes(compute);
  // What the last MLP had saved has been freed by then.
  const std::int64_t attention =
      rows * (attention_workspace(c).bytes(compute) - saved_by_mlp(c).bytes(compute));
  return saved_bytes(c, micro_batch, sequence, compute) + std::max({head, mlp, attention});
}

}  // namespace trireme
