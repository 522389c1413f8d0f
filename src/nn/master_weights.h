// MasterWeights holds the f32 weights that the optimizer updates, for the ranges of a store that
// this rank holds: all of it, or this rank's shards. If the working copies are f32, they are the
// masters; otherwise this object owns the masters, and the working copies are rounded from them.
// Owned by the code that trains or loads a model; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/parameter.h"

namespace trireme {

// HeldRange is the flat elements [first, first + working_copies.count) of a store, and their
// working copies.
struct HeldRange {
  std::int64_t first = 0;
  View working_copies;
};

class MasterWeights {
 public:
  // The masters are set to zero, unless they are the working copies. The ranges do not overlap; the
  // store and the memory of the ranges outlive this.
  MasterWeights(const ParameterStore& store, std::vector<HeldRange> held);
  // Holds the whole store, after store.allocate().
  explicit MasterWeights(const ParameterStore& store)
      : MasterWeights(store, {{0, store.working_copies()}}) {}

  const ParameterStore& store() const { return store_; }
  int ranges() const { return static_cast<int>(held_.size()); }
  const HeldRange& held(int range) const { return held_[static_cast<std::size_t>(range)]; }
  // Returns the number of elements in all ranges.
  std::int64_t elements() const;
  // Returns the masters of one range, f32 [held(range).working_copies.count].
  View values(int range) const;
  // Returns the masters of a parameter, f32 [its elements]. The parameter must lie within one
  // range.
  View value(ParameterId id) const;

  // Sets all masters to their initial values for `seed`, and refreshes the working copies.
  void initialize(std::uint64_t seed);
  // Rounds the working copies from the masters, as is necessary after a load. The optimizer updates
  // both itself.
  void refresh_working_copies();

 private:
  const ParameterStore& store_;
  std::vector<HeldRange> held_;
  std::vector<std::int64_t> starts_;  // where each range begins in own_
  Tensor own_;                        // f32; empty if the working copies are f32
};

}  // namespace trireme
