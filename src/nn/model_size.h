// What a model costs, as formulas of its (complete) config: parameters, arithmetic, memory.
#pragma once

#include <cstdint>

#include "src/device/dtype.h"
#include "src/nn/model_config.h"

namespace trireme {

// Exact; a tied output matrix counts once.
std::int64_t parameter_count(const ModelConfig& config);

// Model FLOPs to train on one token of a sequence of `sequence` tokens: 6 N + 6 L C T (Chowdhery et
// al., PaLM, 2022, appendix B, with causal attention counted as the half that is computed).
// N: the parameters, without the token embedding where the output matrix is a separate one (looking
// a row up costs nothing; the output product is counted once in either case); C = heads x head_dim.
double flops_per_token(const ModelConfig& config, std::int64_t sequence);

// FLOPs of the forward pass for one token of a sequence of `sequence` tokens, by part: products and
// attention (the half that is computed). Backward takes twice as many.
struct ForwardFlops {
  double attention = 0;  // of one block
  double mlp = 0;        // of one block
  double head = 0;
};
ForwardFlops forward_flops(const ModelConfig& config, std::int64_t sequence);

// The most rows of logits that the head holds at one time: 2^26 elements, which are 256 MiB in f32
// (or one row). A function of the shape alone.
std::int64_t logits_rows(const ModelConfig& config);

// Bytes that forward keeps for backward for one micro-batch, all layers (what Saved holds).
std::int64_t saved_bytes(const ModelConfig& config, std::int64_t micro_batch, std::int64_t sequence,
                         DType compute);

// The peak of a pool during Model::forward_backward of one micro-batch: saved_bytes plus the
// largest workspace (the head with its logits, or the backward of the last layer), before the
// pool's rounding of block sizes (at most 12.5 %).
std::int64_t activation_bytes(const ModelConfig& config, std::int64_t micro_batch,
                              std::int64_t sequence, DType compute);

}  // namespace trireme
