// GradientMemory: the f32 buffers of gradients in the making, counted. Owned by the reducer; one
// thread.
#pragma once

#include <vector>

#include "src/parallel/zero_layout.h"

namespace trireme {

class GradientMemory {
 public:
  // Whole buckets come from the pool that ranks share, this rank's blocks of them from its own.
  enum class Kind { whole, block };

  GradientMemory(const ZeroLayout& layout, const ZeroTools& tools);

  // [padded(bucket)], of which all that belongs to no parameter is zero and the rest is not set.
  Buffer take_whole(int bucket);
  // [block(bucket)], not set.
  Buffer take_block(int bucket);
  // `kind` is the one that was taken.
  void give_back(Buffer& buffer, Kind kind);

  // In use now, and the most that ever was.
  std::int64_t bytes() const { return whole_.bytes + block_.bytes; }
  std::int64_t peak_bytes() const { return peak_bytes_; }
  // What the two pools keep for gradients: the most of each kind, at whatever time.
  std::int64_t reserved_bytes() const { return whole_.peak + block_.peak; }

 private:
  struct Count {
    std::int64_t bytes = 0;
    std::int64_t peak = 0;
  };
  Count& count_of(Kind kind) { return kind == Kind::whole ? whole_ : block_; }
  Buffer counted(Buffer buffer, Kind kind);

  const ZeroLayout& layout_;
  ZeroTools tools_;
  std::vector<std::vector<IndexRange>> gaps_;  // of each bucket, counted from its first element
  Count whole_;
  Count block_;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace trireme
