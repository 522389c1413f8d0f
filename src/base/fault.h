// Fault points are named places where tests and drills make the program fail like real faults do.
//
//   fault("ckpt.rename");      // SIGKILL, hang, exception, ... as TRIREME_FAULTS says
//
// They are compiled in and off by default: without a plan, a point costs one load and a branch that
// is never taken. The plan belongs to the process, as its signals do (docs/decisions/0013). Any
// thread may pass a point; arm_faults() must be called before other threads start. Each room lists
// its points (fault_site.h), and fault_plan.h describes the plan.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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

// The planned outcome of a system call: it fails with `error` before it is made, or transfers
// `bytes`.
struct FaultyCall {
  int error = 0;
  std::int64_t bytes = 0;
};

// These are the slow path, taken only when a plan is armed.
void meet_fault(std::string_view site, void* data, std::int64_t bytes);
FaultyCall meet_faulty_call(std::string_view site, std::int64_t bytes);

inline void fault(std::string_view site) {
  if (faults_armed()) {
    meet_fault(site, nullptr, 0);
  }
}
// Passes a point with `bytes` of data, which a fault may change.
inline void fault(std::string_view site, void* data, std::int64_t bytes) {
  if (faults_armed()) {
    meet_fault(site, data, bytes);
  }
}
// Passes a point before a system call that transfers up to `bytes`.
inline FaultyCall fault_call(std::string_view site, std::int64_t bytes = 0) {
  return faults_armed() ? meet_faulty_call(site, bytes) : FaultyCall{0, bytes};
}

// Replaces the plan in unit tests: calls `act` with the name of every point that any thread passes.
// nullptr disarms all points.
void watch_faults(std::function<void(std::string_view site)> act);

// While a FaultsPaused exists, its thread passes fault points without effect, and they are not
// counted. Steps that predict memory and compute nothing are run in this way.
class FaultsPaused {
 public:
  FaultsPaused();
  ~FaultsPaused();
  FaultsPaused(const FaultsPaused&) = delete;
  FaultsPaused& operator=(const FaultsPaused&) = delete;
};

// Puts the rules for this rank and attempt into force and resets all counts of passages. An empty
// list disarms all points. Reports the rules on stderr.
void arm_faults(const std::vector<FaultRule>& rules, int rank, int attempt);

}  // namespace trireme
