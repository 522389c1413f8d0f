// GradientMemory: the f32 buffers of gradients in the making, counted. Owned by the reducer; one
// thread.
#pragma once

#include <vector>

#include "src/parallel/zero_layout.h"

namespace trireme {

class GradientMemory {
 public:
  GradientMemory(const ZeroLayout& layout, const ZeroTools& tools);

  // [padded(bucket)], of which all that belongs to no parameter is zero and the rest is not set.
  Buffer take_whole(int bucket);
  // [block(bucket)], not set.
  Buffer take_block(int bucket);
  void give_back(Buffer& buffer);

  // Held now, and the most that ever was.
  std::int64_t bytes() const { return bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  Buffer counted(Buffer buffer);

  const ZeroLayout& layout_;
  ZeroTools tools_;
  std::vector<std::vector<IndexRange>> gaps_;  // of each bucket, counted from its first element
  std::int64_t bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace trireme
