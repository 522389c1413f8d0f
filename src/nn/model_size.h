// Computes the costs of a model from its (complete) config: parameters and arithmetic. Pure
// functions. Memory is predicted by an engine on a counting device (src/train/memory).
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/model_config.h"

namespace trireme {

// Returns the exact number of parameters without adapters; a tied output matrix counts once.
std::int64_t parameter_count(const ModelConfig& config);
// Returns the number of those that training updates: all but frozen ones, or the adapters alone.
std::int64_t trained_parameter_count(const ModelConfig& config);

// Returns the model FLOPs per token for training on sequences of `sequence` tokens: 6 N + 6 L C T
// (Chowdhery et al., PaLM, 2022, appendix B, with causal attention counted as the half that is
// computed), with C = heads x head_dim. N is the number of parameters, without the token embedding
// if the output matrix is a separate one: to look up a row costs nothing, and the output product
// counts once in either case. Beside adapters it is 4 N instead, because the gradients of frozen
// weights are not computed; the adapters' own products, which are few, do not count. Frozen modules
// count 4 times as well, and together with their attention 2 times below the lowest trained one.
double flops_per_token(const ModelConfig& config, std::int64_t sequence);

// BackwardWork says which gradients backward computes for the attention or the MLP of a block.
enum class BackwardWork : std::uint8_t {
  none,    // all parameters up to it are frozen
  inputs,  // its own are frozen, but not all of those before it
  all,
};
// Returns the work for attention and MLP of each block, in model order: [2 x layers]. With
// adapters, it says `all`.
std::vector<BackwardWork> backward_work(const ModelConfig& config);

// ForwardFlops holds the FLOPs per token of the forward pass on sequences of `sequence` tokens, by
// part: products and attention (the half that is computed). Backward takes twice as many.
struct ForwardFlops {
  double attention = 0;  // per transformer block
  double mlp = 0;        // per transformer block
  double head = 0;
};
ForwardFlops forward_flops(const ModelConfig& config, std::int64_t sequence);

// Returns the largest number of rows of logits that the head holds at a time: 2^26 elements, which
// are 256 MiB in f32, or one row. It depends on the config alone.
std::int64_t logits_rows(const ModelConfig& config);

}  // namespace trireme
