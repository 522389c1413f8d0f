// Declares the implementations among which attention.cc chooses.
#pragma once

#include "src/device/stream.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cpu::TRIREME_ISA {

// Returns whether the two functions below work: only in the avx512 build, on a processor with
// AVX512-BF16. Otherwise they do nothing.
bool has_bf16_dot();
// Take bf16 operands and compute dot products of pairs (vdpbf16ps) with f32 sums.
void attention_forward_bf16(Stream&, const AttentionForward&);
void attention_backward_bf16(Stream&, const AttentionBackward&);

// Attends with a few queries to a long cache of keys, which it does not pack.
void attention_decode(Stream&, const AttentionForward&);

}  // namespace trireme::cpu::TRIREME_ISA
