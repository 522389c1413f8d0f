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
Tensor rope_frequencies(const ModelConfig& config, Pool& pool);

class Attention : public Branch {
 public:
  // frequencies: as above, or empty for no rotation. layer: whose rows of a key-value cache.
  Attention(const ModelConfig& config, std::int64_t layer, const Linear& project_in,
            const Linear& project_out, Tensor frequencies);

  Tensor forward(const Tensor& x, Saved& saved, Run& run) const override;
  Tensor backward(const Tensor& dy, Saved& saved, Run& run) const override;

 private:
  struct Span;  // which tokens a pass works on, and where their packed rows lie
  Span training_span(const Tensor& x, const Tensor& packed) const;
  Span cached_span(const Tensor& x, const Run& run) const;
  void rotate(const Span& span, const View& rows, bool backward, Run& run) const;
  AttentionForward arguments(const Span& span, const View& out, const View& lse) const;

  std::int64_t layer_;
  std::int64_t heads_;
  std::int64_t kv_heads_;
  std::int64_t head_dim_;
  std::int64_t width_;  // of a packed row
  Linear project_in_;
  Linear project_out_;
  Tensor frequencies_;
};

}  // namespace trireme
