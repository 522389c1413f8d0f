#include "src/device/sim/ranges.h"

#include <nvtx3/nvToolsExt.h>

namespace sim {
namespace {

thread_local std::vector<std::string> ranges;

}  // namespace

const std::vector<std::string>& open_ranges() { return ranges; }

}  // namespace sim

extern "C" {

// Both return the level of the range, from 0 on, or a negative number.
int nvtxRangePushA(const char* message) {
  sim::ranges.emplace_back(message);
  return static_cast<int>(sim::ranges.size()) - 1;
}
int nvtxRangePop() {
  if (sim::ranges.empty()) {
    return -1;
  }
  sim::ranges.pop_back();
  return static_cast<int>(sim::ranges.size());
}
}
