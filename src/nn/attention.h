// Attention: causal self-attention with grouped queries, with rotary positions for Llama.
//
//   x [B,T,C] -> packed [B,T,(H + 2 Hkv) D] = queries | keys | values -> heads [B,T,H D] -> [B,T,C]
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"
#include "src/nn/model_config.h"

namespace trireme {

// Angles a position of rotary embedding: theta^(-2j/D) for j < D/2 (Su et al., 2021), stretched as
// Llama 3 does where the config says so. f32 [D/2].
Tensor rope_frequencies(const ModelConfig& config, DeviceContext& context);

// The heads of one rank, of all ranks that compute the layer together.
struct AttentionHeads {
  std::int64_t layer = 0;  // whose rows of a key-value cache
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  // So many neighbouring ranks hold the same key-value heads, and sum the gradients of these.
  int kv_copies = 1;
  std::int64_t first_head = 0;  // number of the first of them among all ranks' heads
  float dropout = 0;            // of attention's weights, while training
  // Of a packed row.
  std::int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
};

class Attention : public Branch {
 public:
  // frequencies: as above, or empty for no rotation. lean: the heads' output is not kept for
  // backward, but made again.
  Attention(const AttentionHeads& heads, const Linear& project_in, const Linear& project_out,
            Tensor frequencies, bool lean);

  Tensor forward(const Tensor& x, Saved& saved, Run& run) const override;
  BranchGradient backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                          Run& run) const override;

 private:
  struct Span;  // which tokens a pass works on, and where their packed rows lie
  struct Output;
  Span training_span(const Tensor& packed) const;
  Span cached_span(const Tensor& x, const Run& run) const;
  void rotate(const Span& span, const View& rows, bool backward, Run& run) const;
  AttentionForward arguments(const Span& span, const View& out, const View& lse,
                             const Run& run) const;
  Output attend(const Span& span, DType dtype, bool for_backward, Run& run) const;
  Tensor packed_gradient(const Tensor& dy, const Tensor& packed, const Output& output,
                         Run& run) const;
  BranchGradient input_gradient(const Tensor& dpacked, const GatheredRows& x, Run& run) const;

  AttentionHeads shape_;
  Linear project_in_;
  Linear project_out_;
  Tensor frequencies_;
  bool lean_;
};

}  // namespace trireme
