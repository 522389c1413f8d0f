// Draws the faults that a job meets, or takes them from elsewhere. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "src/plan/simulate/job_model.h"

namespace trireme {

inline constexpr std::int64_t kAnyNode = -1;  // one of those that compute

struct JobFault {
  double at = 0;  // seconds since the start of the job; see JobFaults::per_attempt
  JobFaultKind kind = JobFaultKind::process;
  std::int64_t node = 0;   // of nodes + spares, a group, or kAnyNode
  std::uint64_t mark = 0;  // determines how far its times are from their means
  // Seconds until the next job after a fault of kind site or stop; negative: as the model says.
  double pause = -1;
  // For faults per attempt: the step after which the fault strikes; negative: it strikes at its
  // time.
  double after_step = -1;
};

struct JobFaults {
  std::vector<JobFault> faults;  // sorted by time
  // Whether each fault hits one attempt, in their order, at a time since that attempt's launch or
  // after a step. A replay has such faults, so that an error in one attempt's duration does not
  // move all others.
  bool per_attempt = false;
};

// Every node, group and the site meets each kind of fault at times of its own (a Poisson process),
// which depend on (seed, draw, kind, node) alone. So a job with more spares or other intervals
// meets the same faults, and their differences are due to nothing else.
JobFaults draw_faults(const JobModel& model, std::uint64_t seed, std::uint32_t draw);

// FaultFeed hands out faults in their order. It refers to them.
class FaultFeed {
 public:
  explicit FaultFeed(const JobFaults& faults) : faults_(faults) {}

  void begin_attempt(double now) {
    is_launched_ = true;
    launched_ = now;
  }
  void end_attempt() { is_launched_ = false; }
  // Return the time and the step of the next fault; infinity if there is none or it has none.
  double next_at() const;
  double next_step() const;
  JobFault take() { return faults_.faults[next_++]; }

 private:
  const JobFaults& faults_;
  std::size_t next_ = 0;
  bool is_launched_ = false;
  double launched_ = 0;  // when the attempt began
};

// Returns a factor with the mean 1 for the `which`-th time that the fault needs: lognormal, with
// `spread` as the standard deviation of its logarithm.
double time_factor(const JobFault& fault, std::uint32_t which, double spread);

}  // namespace trireme
