// MasterWeights: the f32 copy of parameters that the optimizer updates, of the ranges of a store
// that this rank holds: all of it, or the shards that are its own. Where the computes are f32 too,
// they are the masters; elsewhere the masters are the owner's here, and the computes are made from
// them. Owned by whoever trains or loads a model; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/parameter.h"

namespace trireme {

// Flat elements [first, first + computes.count) of a store, and where their computes lie.
struct HeldRange {
  std::int64_t first = 0;
  View computes;
};

class MasterWeights {
 public:
  // Zeros, unless they are the computes. The ranges do not overlap; both arguments outlive this.
  MasterWeights(const ParameterStore& store, std::vector<HeldRange> held);
  // Of all; after store.allocate().
  explicit MasterWeights(const ParameterStore& store)
      : MasterWeights(store, {{0, store.computes()}}) {}

  const ParameterStore& store() const { return store_; }
  int ranges() const { return static_cast<int>(held_.size()); }
  const HeldRange& held(int range) const { return held_[static_cast<std::size_t>(range)]; }
  // Of all ranges together.
  std::int64_t elements() const;
  // f32 [held(range).computes.count].
  View values(int range) const;
  // f32 [elements of the parameter], which is held whole.
  View value(ParameterId id) const;

  // Sets all from (seed, name, element), and the computes of what is held.
  void initialize(std::uint64_t seed);
  // Makes the computes of what is held from the masters; for after a load. The optimizer keeps them
  // in step itself.
  void refresh_computes();

 private:
  const ParameterStore& store_;
  std::vector<HeldRange> held_;
  std::vector<std::int64_t> starts_;  // of each range in own_
  Tensor own_;                        // f32; none where the computes are f32
};

}  // namespace trireme
