// GradientMemory allocates and counts the f32 buffers of gradients that are being computed and
// summed. Owned by the reducer; one thread.
#pragma once

#include <vector>

#include "src/parallel/zero_layout.h"

namespace trireme {

class GradientMemory {
 public:
  // Whole buckets come from the exchange pool, this rank's blocks of them from the rank's own pool.
  enum class Kind { whole, block };

  GradientMemory(const ZeroLayout& layout, const ZeroTools& tools);

  // Returns f32 [padded(bucket)]. What belongs to no parameter is zero, the rest is not set.
  Buffer take_whole(int bucket);
  // Returns a copy of f32 [padded(bucket)].
  Buffer copy_whole(int bucket, const ConstView& values);
  // Sets what belongs to no parameter in f32 [padded(bucket)] to zero.
  void clear_gaps(int bucket, const View& whole, DeviceContext& context) const;
  // Returns f32 [block(bucket)], which is not set.
  Buffer take_block(int bucket);
  // `kind` must be that of the call that returned the buffer.
  void give_back(Buffer& buffer, Kind kind);

  // Return the bytes in use now, and the most that were in use at one time.
  std::int64_t bytes() const { return whole_.bytes + block_.bytes; }
  std::int64_t peak_bytes() const { return peak_bytes_; }
  // Returns the bytes that the two pools keep for gradients: the sum of both kinds' peaks.
  std::int64_t reserved_bytes() const { return whole_.peak + block_.peak; }

 private:
  struct Count {
    std::int64_t bytes = 0;
    std::int64_t peak = 0;
  };
  Buffer allocate_whole(int bucket);
  Count& count_of(Kind kind) { return kind == Kind::whole ? whole_ : block_; }
  Buffer counted(Buffer buffer, Kind kind);

  const ZeroLayout& layout_;
  ZeroTools tools_;
  std::vector<std::vector<IndexRange>> gaps_;  // by bucket, counted from its first element
  Count whole_;
  Count block_;
  std::int64_t peak_bytes_ = 0;
};

}  // namespace trireme
