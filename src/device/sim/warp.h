// The state of one warp of a simulated block: which lanes can run, and which wait for others.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#include "src/device/sim/kernel_thread.h"

namespace sim {

// Lanes that wait for the other lanes of a mask. A lane waits in one gathering at most.
struct Gathering {
  unsigned mask = 0;
  unsigned arrived = 0;
  Collective operation = nullptr;
};

struct Warp {
  unsigned alive = 0;                           // lanes that have not ended
  unsigned ready = 0;                           // lanes that can run
  unsigned started = 0;                         // lanes that have a fiber
  unsigned gathered = 0;                        // lanes that wait in a gathering
  int last = 0;                                 // the lane that ran last
  bool ascending = true;                        // the order in which lanes take turns
  std::array<Gathering, kWarpSize> gatherings;  // by the lowest lane of the mask
  Records records;                              // of the gathered lanes
};

// Returns the position of the set bit whose turn comes after `last`, in a circle. At least one bit
// must be set.
inline int next_turn(unsigned ready, int last, bool ascending) {
  if (ascending) {
    const int shift = (last + 1) % kWarpSize;
    return (std::countr_zero(std::rotr(ready, shift)) + shift) % kWarpSize;
  }
  const unsigned below = std::rotl(ready, (kWarpSize - last) % kWarpSize);
  return (last + 2 * kWarpSize - 1 - std::countl_zero(below)) % kWarpSize;
}

}  // namespace sim
