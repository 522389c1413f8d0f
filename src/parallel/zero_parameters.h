// ZeroParameters holds the working copies of a store as a ZeroLayout divides them, and gathers them
// when they are needed:
//
//   level 0     the store's own buffer
//   level 1, 2  a padded buffer per bucket; after an update, its blocks are all-gathered
//   level 3     this rank's block of each bucket; whole buckets only while a layer uses them
//
// Parameters that are not trained are kept whole, in buffers of their own. The communicator of the
// tools may be a separate one, so that gathers do not queue behind reductions. All ranks of the
// group make the same calls. Owned by ZeroState; one thread.
#pragma once

#include <vector>

#include "src/compute/stream_seconds.h"
#include "src/nn/master_weights.h"
#include "src/nn/parameter_residence.h"
#include "src/parallel/zero_layout.h"

namespace trireme {

class ZeroParameters : public ParameterResidence {
 public:
  // Replaces store.allocate(); all working copies start as zeros. The arguments outlive this.
  ZeroParameters(ParameterStore& store, const ZeroLayout& layout, const ZeroTools& tools);
  ~ZeroParameters() override;
  ZeroParameters(const ZeroParameters&) = delete;
  ZeroParameters& operator=(const ZeroParameters&) = delete;

  // Returns what this rank owns; range b is that of bucket b.
  std::vector<HeldRange> held() const;
  // Starts to send this rank's block of a bucket to the others, after it has changed on every rank.
  // At level 3, no layer may be using the bucket.
  void publish(int bucket);
  // Wait until what was published has arrived: for one bucket, or for all.
  void settle(int bucket) { wait(home(bucket)); }
  void settle();

  void need(ParameterId first, ParameterId end) override;
  void prefetch(ParameterId first, ParameterId end) override;
  void release(ParameterId first, ParameterId end) override;

  // Return the bytes of working copies now, and the most at one time.
  std::int64_t bytes() const { return bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }
  // Returns the time that the stream waited for gathers. Whoever reads it also clears it.
  StreamSeconds& exposed() { return exposed_; }

 private:
  struct Home {
    Buffer own;    // level 3 only, [block]
    Buffer whole;  // [padded]; at level 3, empty unless gathered
    Pending gather;
    int users = 0;
    bool wanted = false;  // prefetched but not yet needed
  };

  Home& home(int bucket) { return homes_[static_cast<std::size_t>(bucket)]; }
  Buffer take(Pool& pool, std::int64_t elements);
  Buffer zeroed(Buffer buffer) const;
  View own_block(int bucket) const;
  void bring(int bucket);
  void wait(Home& home);
  void drop(int bucket);

  ParameterStore& store_;
  const ZeroLayout& layout_;
  ZeroTools tools_;
  std::vector<Home> homes_;
  std::vector<Buffer> others_;  // parameters that are not trained, joined ones together
  std::int64_t bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  StreamSeconds exposed_;
};

}  // namespace trireme
