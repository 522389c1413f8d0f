// ZeroParameters: where the computes of a store lie under a ZeroLayout, and when they are there.
//
//   level 0     the store's own buffer
//   level 1, 2  a padded buffer a bucket; after an update every rank's block of it is all-gathered
//   level 3     this rank's block of each bucket; whole buckets only while somebody needs them
//
// Parameters that are not trained lie beside, whole. The tools' communicator may be one of its own,
// so that gathers do not stand behind reductions. All ranks of the group make the same calls. Owned
// by whoever owns the optimizer; one thread.
#pragma once

#include <vector>

#include "src/nn/master_weights.h"
#include "src/nn/parameter_residence.h"
#include "src/parallel/zero_layout.h"

namespace trireme {

class ZeroParameters : public ParameterResidence {
 public:
  // Takes the place of store.allocate(); zeros. All outlive this.
  ZeroParameters(ParameterStore& store, const ZeroLayout& layout, const ZeroTools& tools);
  ~ZeroParameters() override;
  ZeroParameters(const ZeroParameters&) = delete;
  ZeroParameters& operator=(const ZeroParameters&) = delete;

  // What this rank owns: range b is that of bucket b.
  std::vector<HeldRange> held() const;
  // The owned block of a bucket has changed, as it does on every rank: starts to tell the others.
  // At level 3 nobody may need the bucket.
  void publish(int bucket);
  // Until what was published is there: of one bucket, or all.
  void settle(int bucket) { wait(home(bucket)); }
  void settle();

  void need(ParameterId first, ParameterId end) override;
  void prefetch(ParameterId first, ParameterId end) override;
  void release(ParameterId first, ParameterId end) override;

  // Of computes: held now, and the most that ever was.
  std::int64_t bytes() const { return bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }
  // Waited for gathers, since the start.
  double exposed_seconds() const { return exposed_seconds_; }

 private:
  struct Home {
    Buffer own;    // level 3: [block]
    Buffer whole;  // [padded]; level 3: while it is gathered
    Pending gather;
    int users = 0;
    bool wanted = false;  // prefetched, not yet needed
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
  std::vector<Buffer> others_;  // of parameters that are not trained
  std::int64_t bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  double exposed_seconds_ = 0;
};

}  // namespace trireme
