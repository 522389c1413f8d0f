#include "benchmarks/mem/pointer_chase.h"

#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/philox.h"

namespace trireme {

PointerChase::PointerChase(const PinnedCore& home, std::int64_t bytes)
    : nodes_(bytes / kStrideBytes), memory_(pool_.allocate(nodes_ * kStrideBytes)) {
  run_pinned({home}, [this](std::size_t) {
    auto* nodes = static_cast<Node*>(memory_.data());
    std::vector<std::uint32_t> order(static_cast<std::size_t>(nodes_));
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t i = order.size() - 1; i > 0; --i) {
      std::swap(order[i], order[mix64(i) % (i + 1)]);
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      nodes[order[i]].next = &nodes[order[(i + 1) % order.size()]];
    }
    at_ = nodes;
  });
}

double PointerChase::seconds(const PinnedCore& core, std::int64_t hops) {
  double seconds = 0;
  run_pinned({core}, [&](std::size_t) {
    const Node* node = at_;
    const double begin = steady_seconds();
    for (std::int64_t hop = 0; hop < hops; ++hop) {
      node = node->next;
    }
    // Keeps the compiler from leaving out the loads, or moving them behind the clock.
    asm volatile("" : "+r"(node) : : "memory");
    seconds = steady_seconds() - begin;
    at_ = node;
  });
  return seconds / static_cast<double>(hops);
}

std::int64_t PointerChase::cycle() const {
  std::int64_t length = 1;
  for (const Node* node = at_->next; node != at_ && length <= nodes_; node = node->next) {
    ++length;
  }
  return length;
}

std::optional<double> PointerChase::huge_page_fraction() const {
  const auto first = reinterpret_cast<std::uintptr_t>(memory_.data());
  std::ifstream file("/proc/self/smaps");
  bool within = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    long kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      within = begin <= first && first < end;
    } else if (within && std::sscanf(line.c_str(), "AnonHugePages: %ld kB", &kib) == 1) {
      const double fraction =
          1024 * static_cast<double>(kib) / static_cast<double>(nodes_ * kStrideBytes);
      return fraction > 1 ? 1 : fraction;
    }
  }
  return std::nullopt;
}

}  // namespace trireme
