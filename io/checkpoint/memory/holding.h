// Decides which of a run's steps in memory the next save may overwrite. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "io/checkpoint/memory/node_memory.h"

namespace trireme {

// Number of copies of a rank's blocks in its node's memory: two whole steps, and the one being
// saved.
inline constexpr std::size_t kMemorySlots = 3;

// A step that occupies a slot.
struct HeldStep {
  MemoryStepName name;
  bool is_whole = false;   // whole on every node; otherwise a save in progress or failed
  bool is_copied = false;  // every node's shards were copied to its partner
  bool is_pinned = false;  // still being read, to be written to disk
  std::size_t slot = 0;
};

// Returns the index of the step that the next one may replace: a failed attempt, else the oldest
// step that is neither the newest whole one nor the newest one that partners have. Pinned steps are
// never replaced. Returns nothing if there is no such step. `held` is sorted from the oldest.
std::optional<std::size_t> step_to_give_up(const std::vector<HeldStep>& held);

}  // namespace trireme
