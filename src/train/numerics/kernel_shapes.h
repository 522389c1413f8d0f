// KernelShapes describes the kernel calls of a rank in training: the sizes of its part of a layer,
// and which kernels its model uses. A plain value.
#pragma once

#include <cstdint>

#include "src/device/dtype.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme {

struct RunConfig;

struct KernelShapes {
  DType dtype = DType::f32;  // of activations
  std::int64_t batch = 1;    // batch and time: of a micro-batch
  std::int64_t time = 1;
  std::int64_t channels = 1;  // C
  std::int64_t heads = 1;     // this and the following: of this rank
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t ffn = 1;
  std::int64_t vocabulary = 1;
  bool shares_vocabulary = false;  // whether other ranks have parts of the vocabulary
  bool llama = false;              // RMSNorm, rotary positions, SwiGLU; otherwise LayerNorm, GELU
  bool alibi = false;              // otherwise learned positions, unless llama
  bool swiglu = false;             // instead of GELU
  bool scaled = false;             // whether embeddings or logits are multiplied by a factor
  float attention_scale = 0;       // as in AttentionForward
  float dropout = 0;
  float attention_dropout = 0;
  LossTerms loss_terms = {};
  float temperature = 0;  // at which a teacher is compared; 0 without one
  bool sgd = false;       // otherwise AdamW, which Muon uses, too
  bool fp8 = false;       // whether the linear layers of blocks multiply numbers of 8 bits
  bool by_cudnn = false;  // whether cuDNN computes attention on a CUDA device
  bool averages = false;  // whether a moving average of the weights is kept
  bool keeps_zeros = false;

  std::int64_t rows() const { return batch * time; }
  bool has_learned_positions() const { return !llama && !alibi; }
  bool has_gated_mlp() const { return llama || swiglu; }
};

// Returns the shapes on the first rank of a tensor-parallel group of `tp` ranks.
KernelShapes kernel_shapes(const RunConfig& config, int tp);

}  // namespace trireme
