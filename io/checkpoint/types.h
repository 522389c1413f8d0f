// What goes into a checkpoint and comes out of it: logical tensors, by name, in global shape. A
// rank gives or asks for blocks of them; nothing here knows what the tensors mean. By convention
// parameters stand under their own names, the optimizer's state under optimizer.<what>.<parameter>.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/check.h"
#include "src/base/json_value.h"
#include "src/device/device.h"
#include "src/tensor/extent.h"

namespace trireme {

// Where the elements of a block lie in memory: row after row of its innermost axis, one straight
// behind the other or `pitch` elements apart.
struct BlockRows {
  std::int64_t width = 0;  // of a row, in elements
  std::int64_t pitch = 0;  // 0: rows lie densely
  bool dense() const { return pitch == 0 || pitch == width; }
  // From the first element to the last, in elements.
  std::int64_t span(std::int64_t elements) const {
    return dense() || elements == 0 ? elements : (elements / width - 1) * pitch + width;
  }
  // Where element i of the block lies behind its first.
  std::int64_t at(std::int64_t i) const { return dense() ? i : i / width * pitch + i % width; }
};
inline BlockRows block_rows(const Extent& extent, std::int64_t pitch) {
  check(pitch == 0 || pitch >= extent.length.back(), "rows of a block do not overlap");
  return {extent.length.empty() ? 1 : extent.length.back(), pitch};
}

// A block of a logical tensor in memory: what is saved, and where what is loaded goes. The blocks
// of one name that all ranks save have to tile its tensor exactly once; a load takes any cut.
struct TensorBlock {
  std::string name;
  Shape shape;  // of the whole tensor
  Extent extent;
  View data;  // [rows().span(extent.elements())], on the CPU; a save only reads it
  std::int64_t pitch = 0;
  BlockRows rows() const { return block_rows(extent, pitch); }
  std::int64_t bytes() const { return extent.elements() * size_of(data.dtype); }
};
// Throws unless extent, shape and data belong together.
void check_block(const TensorBlock& block);

struct CheckpointMeta {
  std::int64_t step = 0;
  std::int64_t samples = 0;  // consumed so far
  // Fingerprints are objects of fields, so that a difference can be told field by field.
  JsonValue config;
  JsonValue numerics;
  JsonValue extra;
};

}  // namespace trireme
