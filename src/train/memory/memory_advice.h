// Finds changes that make a run fit into the memory of its hosts or CUDA devices. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/train/memory/memory_plan.h"

namespace trireme {

// HostShare is a host with the ranks of a run that start on it, or the device of one rank.
struct HostShare {
  std::string host;  // for example "host n1", or "CUDA device 3 of host n1"
  std::vector<int> ranks;
  std::int64_t available = 0;  // bytes that the ranks may take together, beyond what they hold
  std::string source;          // where `available` comes from
  // Bytes that checkpoints of earlier attempts occupy in its memory; new ones replace them.
  std::int64_t held = 0;
};

// Returns the bytes that the host's ranks will take, beyond what they hold.
std::int64_t to_come(const HostShare& host, const std::vector<MemoryPlan>& plans,
                     const std::vector<std::int64_t>& resident_at_start);

struct MemoryAdvice {
  std::string keys;  // such as "parallel.zero=1"
  RunConfig config;
};
// Returns the cheapest change with which the ranks of every host fit: a single one or, if none is
// enough, several together. In the order of their cost, they are train.recompute=selective,
// parallel.zero 1 and 2, train.recompute=full, a smaller train.micro_batch, parallel.zero 3, more
// tp, and more pp. Returns nothing if all of them are not enough.
std::optional<MemoryAdvice> memory_advice(const RunConfig& config, const Layout& layout,
                                          const std::vector<HostShare>& hosts,
                                          const std::vector<std::int64_t>& resident_at_start,
                                          MemoryPlace place = MemoryPlace::host);

// Returns why the run cannot start, with numbers and advice, or nothing if every host has enough
// memory. place: that of the plans.
std::optional<std::string> memory_fault(const RunConfig& config, const Layout& layout,
                                        const std::vector<HostShare>& hosts,
                                        const std::vector<MemoryPlan>& plans,
                                        const std::vector<std::int64_t>& resident_at_start,
                                        MemoryPlace place = MemoryPlace::host);

}  // namespace trireme
