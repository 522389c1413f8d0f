// AtFaults calls a function at every fault point that the process passes while the object lives. It
// is made and destroyed while no other thread passes points; the function is called on any thread.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "src/base/fault.h"

namespace trireme {

class AtFaults {
 public:
  explicit AtFaults(std::function<void(std::string_view point)> act) {
    watch_faults(std::move(act));
  }
  ~AtFaults() { watch_faults(nullptr); }
  AtFaults(const AtFaults&) = delete;
  AtFaults& operator=(const AtFaults&) = delete;
};

}  // namespace trireme
