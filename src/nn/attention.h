// Attention is causal self-attention with grouped queries. Positions enter by rotation, as in
// Llama, by ALiBi's bias of the scores, or not at all if they were added to the stream, as in
// GPT-2.
//
// If the run says where documents lie, rotation and attention take each of them as if it were a
// sample of its own; the products take the whole micro-batch.
//
//   x [B,T,C] -> packed [B,T,(H + 2 Hkv) D] = queries | keys | values -> heads [B,T,H D] -> [B,T,C]
//
// A Branch of a ResidualLayer; it has no state and can be used for any number of micro-batches.
#pragma once

#include "src/nn/layer.h"
#include "src/nn/linear.h"
#include "src/nn/model_config.h"

namespace trireme {

// Returns the angles per position of rotary embedding, f32 [D/2]: theta^(-2j/D) for j < D/2 (Su et
// al., 2021), stretched as in Llama 3 if config.rope_scaling is on.
Tensor rope_frequencies(const ModelConfig& config, DeviceContext& context);

// Returns ALiBi's slopes (alibi.h) of `count` heads from `first` on, f32 [count].
Tensor alibi_slopes(const ModelConfig& config, std::int64_t first, std::int64_t count,
                    DeviceContext& context);

// AttentionHeads describes the heads of one layer that one rank of a tensor-parallel group
// computes.
struct AttentionHeads {
  std::int64_t layer = 0;  // transformer block; selects the rows of a key-value cache
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  // kv_copies neighbouring ranks hold the same key-value heads and sum their gradients.
  int kv_copies = 1;
  std::int64_t first_head = 0;  // number of the first of these heads among all ranks' heads
  float dropout = 0;            // probability for attention's weights, in training only
  float scale = 0;              // of the scores; 0: 1 / sqrt(head_dim)
  // Returns the number of elements per packed row.
  std::int64_t width() const { return (heads + 2 * kv_heads) * head_dim; }
};

// AttentionPositions says how attention sees positions.
struct AttentionPositions {
  Tensor frequencies = {};  // from rope_frequencies; or empty for no rotation
  Tensor slopes = {};       // from alibi_slopes, for the heads of this rank; or empty for no bias
};

class Attention : public Branch {
 public:
  // lean: the output of the heads is not saved for backward, which computes it again.
  Attention(const AttentionHeads& heads, const Linear& project_in, const Linear& project_out,
            AttentionPositions positions, bool lean);

  Tensor forward(const Tensor& x, Saved& saved, Run& run) const override;
  BranchGradient backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                          Run& run) const override;

 private:
  struct Span;  // tokens that a pass or a call computes, and where their packed rows are
  struct Output;
  Span training_span(const Tensor& packed) const;
  Span cached_span(const Tensor& x, const Run& run) const;
  // Calls each(part) for every document of the span, or for the whole span if no document ends
  // within it.
  template <class Each>
  void each_document(const Span& span, const Run& run, const Each& each) const;
  // rows: T [B,T,width], the span's packed rows or their gradient.
  void rotate(const Span& span, const View& rows, bool backward, Run& run) const;
  // part: of the span of which the output is.
  AttentionForward arguments(const Span& part, const Output& output, const Run& run) const;
  Output attend(const Span& span, DType dtype, bool for_backward, Run& run) const;
  Tensor packed_gradient(const Tensor& dy, const Tensor& packed, const Output& output,
                         Run& run) const;
  BranchGradient input_gradient(const Tensor& dpacked, const GatheredRows& x, Run& run) const;

  AttentionHeads shape_;
  Linear project_in_;
  Linear project_out_;
  AttentionPositions positions_;
  bool lean_;
};

}  // namespace trireme
