// The instructions that a kernel table really takes in this process: its name leaves open what
// oneDNN chooses for the products (ONEDNN_MAX_CPU_ISA limits it) and what attention in bf16 does.
// All of it is part of the numerics fingerprint.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// "avx512_core_bf16, bf16_dot": the richest set that oneDNN uses, and attention's dot products of
// pairs where the processor has them. "none" for the reference. The first call fixes oneDNN's set.
std::string instructions_of(std::string_view kernels);

// "avx2 instead of avx512_core_bf16 (ONEDNN_MAX_CPU_ISA=AVX2)" if the products use lesser
// instructions than the processor has; empty if not, and where TRIREME_KERNELS chooses them.
std::string lesser_instructions(std::string_view kernels);

// "avx512 (avx512_core_bf16, bf16_dot)": two ranks of the same text compute the same bits.
std::string kernels_text(std::string_view kernels);

}  // namespace trireme
