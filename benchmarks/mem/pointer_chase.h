// PointerChase measures the latency of idle memory: each load takes its address from the one
// before, along one random cycle through all nodes, so that neither caches nor prefetching help.
// The benchmark owns it and uses it on one thread.
#pragma once

#include <cstdint>
#include <optional>

#include "benchmarks/pinned_threads.h"
#include "src/device/pool.h"

namespace trireme {

class PointerChase {
 public:
  // Two lines, because processors may fetch lines in pairs.
  static constexpr std::int64_t kStrideBytes = 128;

  // Builds the cycle on the core `home`, whose NUMA node then holds it. bytes: at least two
  // strides.
  PointerChase(const PinnedCore& home, std::int64_t bytes);

  // Returns the seconds per load on a core, over `hops` loads that go on where the last call ended.
  double seconds(const PinnedCore& core, std::int64_t hops);
  std::int64_t nodes() const { return nodes_; }
  // Returns after how many loads the chase is back at its start; nodes() unless the cycle is
  // broken.
  std::int64_t cycle() const;
  // Returns the fraction of the memory that lies on huge pages; nothing if the system does not
  // tell.
  std::optional<double> huge_page_fraction() const;

 private:
  struct alignas(kStrideBytes) Node {
    const Node* next;
  };

  std::int64_t nodes_;
  Pool pool_{Device::cpu()};
  Buffer memory_;
  const Node* at_ = nullptr;
};

}  // namespace trireme
