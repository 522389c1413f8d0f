// Attention by cuDNN (train.attention: cudnn): the graphs of causal attention that its fused
// engines recognize, for bf16 and fp16, with grouped queries, saved log-sum-exp, and a
// deterministic backward pass. The graphs are those of cuDNN's own frontend 1.19 for versions
// before 9.20.
#pragma once

#include <memory>
#include <string>

#include "src/kernels/cuda/cudnn_graph.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cuda {

// What distinguishes plans. Sizes count elements.
struct CudnnAttentionKind {
  DType dtype = DType::bf16;
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t q_stride = 0;  // from one token to the next, as kv_stride
  std::int64_t kv_stride = 0;
  bool backward = false;
  friend auto operator<=>(const CudnnAttentionKind&, const CudnnAttentionKind&) = default;
};

// The numbers of the graphs' tensors in memory.
enum CudnnAttentionTensor : std::int64_t {
  kTensorQ = 1,
  kTensorK,
  kTensorV,
  kTensorOut,
  kTensorLse,
  kTensorScale,   // a number, which multiplies the products of q and k
  kTensorMasked,  // a number: the score of a masked key
  kTensorOne,     // a number: 1
  kTensorDOut,
  kTensorDQ,
  kTensorDK,
  kTensorDV,
  kTensorDelta,  // f32 [B, heads, T]: memory for the plan itself
};

// Builds the graph of a kind.
void build_attention(CudnnGraph& graph, const CudnnAttentionKind& kind);

// Returns the most memory that attention of a kind takes for itself: cuDNN's deterministic backward
// pass stores the gradients of all scores in 16 bits, padded to multiples of 64 and 128, and with
// grouped queries those of keys and values for each query head. That is what cuDNN 9.19 asks for on
// an H100; a plan that asks for more is refused.
std::int64_t attention_workspace_bytes(const CudnnAttentionKind& kind);

}  // namespace trireme::cuda
