// The parts of attention that attention.cc chooses from.
#pragma once

#include "src/kernels/kernel_arguments.h"

namespace trireme::cpu::TRIREME_ISA {

// Whether the two below work: AVX512-BF16, in the avx512 build on a processor that has it.
bool has_bf16_dot();
// bf16 operands, products by pairs (vdpbf16ps), sums in f32.
void attention_forward_bf16(Stream&, const AttentionForward&);
void attention_backward_bf16(Stream&, const AttentionBackward&);

// A few queries against a long cache of keys: no packing.
void attention_decode(Stream&, const AttentionForward&);

}  // namespace trireme::cpu::TRIREME_ISA
