// Fault points: named places where tests and drills make the program fail as the world would.
//
//   fault("ckpt.rename");      // SIGKILL, hang, exception, ... as TRIREME_FAULTS says
//
// Compiled in, off by default: without a plan a point costs one load and a branch that is never
// taken. The plan belongs to the process, as its signals do (docs/decisions/0013). Any thread may
// pass a point; arm_faults() comes before other threads. Names: fault_sites.h; plan: fault_plan.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/fault_plan.h"

namespace trireme {

namespace fault_detail {
inline constinit std::atomic<bool> armed{false};
}

inline bool faults_armed() {
  return __builtin_expect(fault_detail::armed.load(std::memory_order_relaxed), false);
}

// What becomes of a system call: it fails with `error` before it is made, or moves `bytes`.
struct FaultyCall {
  int error = 0;
  std::int64_t bytes = 0;
};

// The long way, when armed.
void meet_fault(std::string_view site, void* data, std::int64_t bytes);
FaultyCall meet_faulty_call(std::string_view site, std::int64_t bytes);

inline void fault(std::string_view site) {
  if (faults_armed()) {
    meet_fault(site, nullptr, 0);
  }
}
// Where `bytes` of data pass.
inline void fault(std::string_view site, void* data, std::int64_t bytes) {
  if (faults_armed()) {
    meet_fault(site, data, bytes);
  }
}
// Before a system call that shall move up to `bytes`.
inline FaultyCall fault_call(std::string_view site, std::int64_t bytes = 0) {
  return faults_armed() ? meet_faulty_call(site, bytes) : FaultyCall{0, bytes};
}

// Those of the rules that mean this rank and generation are in force from here on, counted from
// zero passages; none switches all points off. Says on stderr what is in force.
void arm_faults(const std::vector<FaultRule>& rules, int rank, int generation);

}  // namespace trireme
