// Defines what a checkpoint contains: logical tensors, identified by name, with global shapes. A
// rank saves or loads blocks of them; this folder does not depend on what the tensors mean. By
// convention, parameters have their own names, and optimizer state is named
// optimizer.<what>.<parameter>.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/base/check.h"
#include "src/base/json_value.h"
#include "src/device/device.h"
#include "src/policy/label.h"
#include "src/tensor/extent.h"

namespace trireme {

// Says where the elements of a block lie in memory: in rows along its innermost axis, which are
// contiguous or start `pitch` elements apart.
struct BlockRows {
  std::int64_t width = 0;  // elements per row
  std::int64_t pitch = 0;  // 0 means contiguous rows
  bool dense() const { return pitch == 0 || pitch == width; }
  // Returns the number of elements in memory from the block's first to its last, gaps included.
  std::int64_t span(std::int64_t elements) const {
    return dense() || elements == 0 ? elements : (elements / width - 1) * pitch + width;
  }
  // Returns the position in memory of element i, relative to the block's first, in elements.
  std::int64_t at(std::int64_t i) const { return dense() ? i : i / width * pitch + i % width; }
};
inline BlockRows block_rows(const Extent& extent, std::int64_t pitch) {
  check(pitch == 0 || pitch >= extent.length.back(), "rows of a block do not overlap");
  return {extent.length.empty() ? 1 : extent.length.back(), pitch};
}

// A TensorBlock is a block of a logical tensor in memory: the source of a save, or the destination
// of a load. The blocks that all ranks save under one name must tile its tensor exactly once; those
// of a load may be cut in any way.
struct TensorBlock {
  std::string name;
  Shape shape;  // of the whole tensor
  Extent extent;
  View data;  // on the CPU, [rows().span(extent.elements())]; a save only reads it
  std::int64_t pitch = 0;
  BlockRows rows() const { return block_rows(extent, pitch); }
  std::int64_t bytes() const { return extent.elements() * size_of(data.dtype); }
};
// Throws unless extent, shape and data fit together.
void check_block(const TensorBlock& block);

struct CheckpointMeta {
  std::int64_t step = 0;
  std::int64_t samples = 0;  // samples that training has consumed so far
  // Fingerprints are objects of fields, so that differences can be reported field by field.
  JsonValue config;
  JsonValue numerics;
  JsonValue extra;
  // The join of the labels of everything that the checkpoint was made from (src/policy/label.h).
  std::optional<Label> label = {};
};

}  // namespace trireme
