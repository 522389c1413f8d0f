// What to do about ranks that compute with different kernels: the start of a run and `trireme
// doctor` give the same advice.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// Of two ranks' kernels, each as "avx512 (avx512_core_bf16, bf16_dot)": the variable to set so that
// both compute the same bits.
std::string same_kernels_advice(std::string_view one, std::string_view other);

}  // namespace trireme
