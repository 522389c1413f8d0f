// Defines numerics.reproducibility: which runs are promised the same bits, and which data-parallel
// degrees can keep that promise. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace trireme {

enum class Reproducibility {
  elastic,  // the same bits for every number of ranks
  layout,   // the same bits for the same number of ranks
  fast      // no promise
};
std::string_view to_string(Reproducibility reproducibility);

// Throws ConfigError if `micro_batches` per step cannot be divided among dp ranks under that
// promise. The message has the formula, the nearest degrees that work, and the alternative.
void check_reduction(std::int64_t micro_batches, int dp, Reproducibility reproducibility);

}  // namespace trireme
