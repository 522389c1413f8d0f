// Advises what to do about ranks that compute with different kernels. Shared by the start of a run
// and `trireme doctor`.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// Returns which variable to set so that two ranks compute the same bits. `one` and `other` are
// their kernels, such as "avx512 (avx512_core_bf16, bf16_dot)".
std::string same_kernels_advice(std::string_view one, std::string_view other);

}  // namespace trireme
