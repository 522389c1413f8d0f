// numerics.reproducibility: what a run promises about its bits, and which data-parallel degrees can
// keep the promise. Pure functions.
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

// ConfigError where `micro_batches` a step can't be spread over dp ranks with that promise: says
// the formula, the nearest dp that works and the other way out.
void check_reduction(std::int64_t micro_batches, int dp, Reproducibility reproducibility);

}  // namespace trireme
