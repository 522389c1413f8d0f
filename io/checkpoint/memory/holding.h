// What of a run's steps in memory may be overwritten by the next one. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "io/checkpoint/memory/node_memory.h"

namespace trireme {

// Copies of a rank's blocks in its node's memory: two whole steps and the one under way.
inline constexpr std::size_t kMemorySlots = 3;

// A step that takes a slot.
struct HeldStep {
  MemoryStepName name;
  bool is_whole = false;   // on every node; otherwise an attempt that failed
  bool is_copied = false;  // by every node's partner
  bool is_pinned = false;  // still being read for the disk
  std::size_t slot = 0;
};

// Which of the steps, oldest first, the next one may take the place of: a failed attempt, else the
// oldest that is neither the newest whole one, nor the newest that partners have, nor pinned.
// Nothing if there is none.
std::optional<std::size_t> step_to_give_up(const std::vector<HeldStep>& held);

}  // namespace trireme
