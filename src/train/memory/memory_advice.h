// What to change about a run that does not fit into the memory of its hosts. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/train/memory/memory_plan.h"

namespace trireme {

// Of a host whose ranks a run wants to start.
struct HostShare {
  std::string host;
  std::vector<int> ranks;
  std::int64_t available = 0;  // bytes that they may take together, beyond what they hold
  std::string source;          // what says so
  // Bytes that checkpoints of earlier attempts take in its memory: new ones take their place.
  std::int64_t held = 0;
};

// Bytes that the host's ranks will take, beyond what they hold.
std::int64_t to_come(const HostShare& host, const std::vector<MemoryPlan>& plans,
                     const std::vector<std::int64_t>& resident_at_start);

struct MemoryAdvice {
  std::string keys;  // "parallel.zero=1"
  RunConfig config;
};
// The change that costs least and makes every host's ranks fit: a single one, or else several
// together. In the order of what they cost: train.recompute=selective, parallel.zero 1 and 2,
// train.recompute=full, a smaller train.micro_batch, parallel.zero 3, more tp, more pp. Nothing, if
// none of this is enough.
std::optional<MemoryAdvice> memory_advice(const RunConfig& config, const Layout& layout,
                                          const std::vector<HostShare>& hosts,
                                          const std::vector<std::int64_t>& resident_at_start);

// Why the run can't start, with numbers and advice; nothing if every host has enough memory.
std::optional<std::string> memory_fault(const RunConfig& config, const Layout& layout,
                                        const std::vector<HostShare>& hosts,
                                        const std::vector<MemoryPlan>& plans,
                                        const std::vector<std::int64_t>& resident_at_start);

}  // namespace trireme
