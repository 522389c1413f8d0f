// JobStragglers keeps the slow nodes of a simulated job. All nodes wait for the slowest, so their
// number does not matter. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/plan/simulate/job_model.h"

namespace trireme {

class JobStragglers {
 public:
  explicit JobStragglers(const JobModel::Straggler& model) : model_(model) {}

  void begin(std::int64_t node, double now);
  // The node is out of the job.
  void remove(std::int64_t node);
  void clear() { slow_.clear(); }
  // Removes those that have recovered by themselves.
  void end_recovered(double now);

  // Returns how many times as long a step takes.
  double slowdown() const { return slow_.empty() ? 1 : model_.slowdown; }
  // Returns when end_recovered() or noticed() has something to do; infinity if never.
  double next_event() const;
  // Returns a node that was noticed and is to be replaced.
  std::optional<std::int64_t> noticed(double now) const;
  // Keeps a node that can't be replaced, because there is no spare.
  void tolerate(std::int64_t node);

 private:
  struct Slow {
    std::int64_t node = 0;
    double until = 0;
    double noticed_at = 0;  // infinity: it is to be kept
  };
  JobModel::Straggler model_;
  std::vector<Slow> slow_;
};

}  // namespace trireme
