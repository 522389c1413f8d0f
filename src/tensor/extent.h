// Extent is the position of a block in a whole (logical) tensor: a hyper-rectangle, into which
// tensor parallelism cuts tensors, or a flat range of the row-major elements, into which optimizer
// sharding cuts them. A block's own elements are dense and row-major.
#pragma once

#include <string>
#include <vector>

#include "src/tensor/shape.h"

namespace trireme {

struct Extent {
  enum class Kind { box, flat };
  Kind kind = Kind::box;
  std::vector<std::int64_t> start;   // box: first index per axis; flat: {first element}
  std::vector<std::int64_t> length;  // box: indices per axis; flat: {elements}

  static Extent whole(const Shape& shape) {
    return {Kind::box, std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0),
            shape.to_vector()};
  }
  static Extent box(std::vector<std::int64_t> start, std::vector<std::int64_t> length) {
    return {Kind::box, std::move(start), std::move(length)};
  }
  static Extent flat(std::int64_t first, std::int64_t elements) {
    return {Kind::flat, {first}, {elements}};
  }
  std::int64_t elements() const;
  // Returns whether the block lies within a tensor of that shape.
  bool fits(const Shape& shape) const;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// Run1d is a run of elements that is contiguous both in the whole tensor and in the block.
struct Run1d {
  std::int64_t whole_first;  // row-major element number in the whole tensor
  std::int64_t block_first;  // element number in the block
  std::int64_t elements;
};
// Returns the runs of a block in order. A block that is flat or whole is one run.
std::vector<Run1d> runs_of(const Extent& extent, const Shape& shape);

}  // namespace trireme
