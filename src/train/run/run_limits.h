// Defines limits of a run's configuration that also hold for what its checkpoints contain.
#pragma once

#include <cstdint>

namespace trireme {

// Upper limit for steps, because dropout's random numbers have a 32-bit coordinate for the step.
inline constexpr std::int64_t kMostSteps = 4294967295;
// Upper limit for divergence.window, in steps.
inline constexpr std::int64_t kMostSpikeWindow = 4096;

// Upper limit for train.fp8.history, in steps.
inline constexpr std::int64_t kMostFp8Steps = 1024;

// Returns whether a loss scale (train.loss_scale) is a power of two within the range of f32.
constexpr bool is_loss_scale(double scale) {
  return scale >= 1 && scale <= 0x1p40 &&
         static_cast<double>(static_cast<std::int64_t>(scale)) == scale &&
         (static_cast<std::int64_t>(scale) & (static_cast<std::int64_t>(scale) - 1)) == 0;
}

}  // namespace trireme
