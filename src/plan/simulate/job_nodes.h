// JobNodes keeps which node computes in which slot of a simulated job, which ones are spare, and
// which are in repair. A plain value.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace trireme {

class JobNodes {
 public:
  // Numbers the nodes from 0; the first `slots` compute.
  JobNodes(std::int64_t slots, std::int64_t spares);

  std::optional<std::int64_t> slot_of(std::int64_t node) const;
  // Returns a node that computes; the first one if there is none.
  std::int64_t any_active() const;
  // Takes a node out of its slot or from the spares until the time `back`. Returns its slot.
  std::optional<std::int64_t> lose(std::int64_t node, double back);
  // Makes spares of the nodes whose repair has ended.
  void end_repairs(double now);
  // Puts spares into empty slots and returns how many stay empty.
  std::int64_t fill();
  // Replaces all nodes by healthy ones, as a new job gets them.
  void renew();

  std::int64_t active() const { return active_; }
  std::int64_t total() const { return static_cast<std::int64_t>(slot_.size()); }
  bool has_spare() const { return !spares_.empty(); }
  // Returns when the next repair ends; infinity if there is none.
  double next_return() const;

 private:
  std::int64_t slots_;
  std::int64_t active_ = 0;
  std::vector<std::int64_t> slot_;  // of each node; -1: none
  std::vector<std::int64_t> empty_;
  std::deque<std::int64_t> spares_;
  std::vector<std::pair<double, std::int64_t>> repairs_;  // a heap: the next to return, its number
};

}  // namespace trireme
