// Defines limits of a run's configuration that also hold for what its checkpoints contain.
#pragma once

#include <cstdint>

namespace trireme {

// Upper limit for steps, because dropout's random numbers have a 32-bit coordinate for the step.
inline constexpr std::int64_t kMostSteps = 4294967295;
// Upper limit for divergence.window, in steps.
inline constexpr std::int64_t kMostSpikeWindow = 4096;

}  // namespace trireme
