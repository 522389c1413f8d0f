// Declares the entries of the CUDA table that cuDNN computes, and the choice of its engines.
#pragma once

#include <string>

#include "src/kernels/kernels.h"

namespace trireme::cuda {

// Calls that cuDNN's graphs do not cover (fp32, a key-value cache, dropout, odd
// sizes or alignments) are computed by the program's own attention.
void attention_forward_by_cudnn(Stream&, const AttentionForward&);
void attention_backward_by_cudnn(Stream&, const AttentionBackward&);

// Describes a call: for example "attention 8x1024, 12 heads of 64, 4 for keys".
std::string describe(const AttentionForward& p, bool backward);
// Chooses an engine for a call, unless that was done before, and describes it; for a call that the
// program's own kernels compute, says so. Throws ConfigError if cuDNN has no deterministic engine.
std::string choose_attention(int device, const AttentionForward& p, bool backward);
// Permits no further choices for the device.
void close_attention_choices(int device);

}  // namespace trireme::cuda
