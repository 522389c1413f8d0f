// Reports the instructions that a kernel table really uses in this process. The table's name does
// not determine what oneDNN chooses for the products (ONEDNN_MAX_CPU_ISA limits it), nor whether
// attention uses bf16 dot products. All of this is part of the numerics fingerprint.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// Returns "avx512_core_bf16, bf16_dot": the richest set that oneDNN uses, and "bf16_dot" if
// attention uses dot products of bf16 pairs. Returns "none" for the reference and, for example,
// "sm_90 on NVIDIA H100 80GB HBM3" for cuda. The first call fixes oneDNN's set.
std::string instructions_of(std::string_view kernels);

// Returns the library that computes the products of a kernel table, for example "oneDNN 2.6.3".
std::string products_of(std::string_view kernels);

// Returns "avx2 instead of avx512_core_bf16 (ONEDNN_MAX_CPU_ISA=AVX2)" if the products use a lesser
// set than the processor has. Returns "" otherwise, and if TRIREME_KERNELS has chosen the set.
std::string lesser_instructions(std::string_view kernels);

// Returns "avx512 (avx512_core_bf16, bf16_dot)". Two ranks with the same text compute the same
// bits.
std::string kernels_text(std::string_view kernels);

}  // namespace trireme
