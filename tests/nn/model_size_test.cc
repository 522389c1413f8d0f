#include "src/nn/model_size.h"

#include <gtest/gtest.h>

#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

ModelConfig gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  ModelConfig c;
  c.layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  c.vocab = 50257;
  c.context = 1024;
  c.complete();
  return c;
}

ModelConfig llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                  std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocab) {
  ModelConfig c;
  c.family = Family::llama;
  c.layers = layers;
  c.hidden = hidden;
  c.heads = heads;
  c.kv_heads = kv_heads;
  c.ffn = ffn;
  c.vocab = vocab;
  c.context = 8192;
  c.tie_embeddings = false;
  c.complete();
  return c;
}

// The counts are those that the models' publishers and Hugging Face's num_parameters() give.
TEST(ModelSize, PublishedParameterCounts) {
  EXPECT_EQ(parameter_count(gpt2(12, 768, 12)), 124439808);
  EXPECT_EQ(parameter_count(gpt2(24, 1024, 16)), 354823168);
  EXPECT_EQ(parameter_count(gpt2(36, 1280, 20)), 774030080);
  EXPECT_EQ(parameter_count(gpt2(48, 1600, 25)), 1557611200);
  EXPECT_EQ(parameter_count(llama(32, 4096, 32, 32, 11008, 32000)), 6738415616);
  EXPECT_EQ(parameter_count(llama(32, 4096, 32, 8, 14336, 128256)), 8030261248);
  EXPECT_EQ(parameter_count(llama(80, 8192, 64, 8, 28672, 128256)), 70553706496);
  EXPECT_EQ(parameter_count(llama(126, 16384, 128, 8, 53248, 128256)), 405853388800);
}

TEST(ModelSize, CountsWhatTheModelDeclares) {
  for (const ModelConfig& base : {tiny_gpt2(), tiny_jais(), tiny_llama()}) {
    for (const bool tied : {true, false}) {
      ModelConfig config = base;
      config.tie_embeddings = tied;
      config.qkv_bias = tied && config.family == Family::llama;
      DeviceContext context(Device::cpu(), 1);
      ParameterStore store(context, DType::f32);
      const Model model(config, store);
      EXPECT_EQ(parameter_count(config), store.parameter_elements());
    }
  }
}

TEST(ModelSize, FlopsCountTheOutputProductOnce) {
  const ModelConfig tied = gpt2(12, 768, 12);
  EXPECT_DOUBLE_EQ(flops_per_token(tied, 1024), 6.0 * 124439808 + 6.0 * 12 * 768 * 1024);
  ModelConfig untied = tied;
  untied.tie_embeddings = false;
  EXPECT_DOUBLE_EQ(flops_per_token(untied, 1024), flops_per_token(tied, 1024));
}

TEST(ModelSize, LogitsStayWithinTheirBound) {
  EXPECT_EQ(logits_rows(gpt2(1, 768, 12)), (1 << 26) / 50257);
  ModelConfig c = gpt2(1, 768, 12);
  c.vocab = 1 << 30;
  EXPECT_EQ(logits_rows(c), 1);
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

// Returns the peak bytes of a pool during Model::forward_backward of one micro-batch: what the
// forward pass saves for backward in all layers (see Saved), plus the largest workspace (the head
// with its logits, or the backward of the last layer), before the pool rounds block sizes up (by at
// most 12.5 %).
std::int64_t activation_bytes(const ModelConfig& c, std::int64_t micro_batch, std::int64_t sequence,
                              DType compute) {
  const std::int64_t rows = micro_batch * sequence;
  const std::int64_t saved =
      rows * c.layers * (saved_by_attention(c).bytes(compute) + saved_by_mlp(c).bytes(compute));
  const std::int64_t head = rows * head_workspace(c).bytes(compute) +
                            std::min(logits_rows(c), rows) * c.vocab * size_of(compute);
  const std::int64_t mlp = rows * mlp_workspace(c, compute).bytes(compute);
  // The tensors that the last MLP had saved have been freed by then.
  const std::int64_t attention =
      rows * (attention_workspace(c).bytes(compute) - saved_by_mlp(c).bytes(compute));
  return saved + std::max({head, mlp, attention});
}

// Returns sizes whose tensors the pool allocates without rounding, so that its peak equals the
// formula.
ModelConfig unrounded(ModelConfig c) {
  c.hidden = 64;
  c.heads = 4;
  c.kv_heads = c.family == Family::gpt2 ? 4 : 2;
  c.head_dim = 16;
  c.ffn = 256;
  c.context = 64;
  return c;
}

class ActivationBytes
    : public testing::TestWithParam<std::tuple<Family, DType, std::int64_t, double>> {};

TEST_P(ActivationBytes, IsThePeakOfThePool) {
  const auto [family, compute, vocab, dropout] = GetParam();
  ModelConfig config = unrounded(family == Family::gpt2 ? tiny_gpt2() : tiny_llama());
  config.vocab = vocab;
  config.dropout = dropout;
  TinyModel tiny(config, compute, kernels_named("reference"));
  tiny.run.training = true;
  const Tokens tokens(2, 32, vocab, 0);
  for (int step = 0; step < 2; ++step) {
    tiny.model.forward_backward(tokens.micro_batch, 1, tiny.run);
    EXPECT_EQ(tiny.context.activations().peak_bytes(), activation_bytes(config, 2, 32, compute));
  }
  // A second step takes nothing from the system.
  const std::int64_t reserved = tiny.context.activations().reserved_bytes();
  tiny.model.forward_backward(tokens.micro_batch, 1, tiny.run);
  EXPECT_EQ(tiny.context.activations().reserved_bytes(), reserved);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ActivationBytes,
                         testing::Combine(testing::Values(Family::gpt2, Family::llama),
                                          testing::Values(DType::f32, DType::bf16),
                                          testing::Values(std::int64_t{16}, std::int64_t{4096}),
                                          testing::Values(0.0, 0.25)));

}  // namespace
}  // namespace trireme
