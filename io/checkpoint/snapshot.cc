#include "io/checkpoint/snapshot.h"

#include <utility>

#include "io/checkpoint/staging.h"

namespace trireme {

Snapshot make_snapshot(ShardPlan plan, std::byte* image, SnapshotFill fill) {
  Snapshot snapshot{image, plan.tensors.empty() ? 0 : plan.bytes, plan.tensors, {}};
  const bool later = fill.ready != nullptr;
  auto work = [plan = std::move(plan), image, fill = std::move(fill)] {
    if (fill.ready != nullptr) {
      fill.ready();
    }
    fill_image(plan, image, fill.threads);
    fill.done();
  };
  if (later) {
    snapshot.filled = std::async(std::launch::deferred, std::move(work)).share();
  } else {
    work();
  }
  return snapshot;
}

}  // namespace trireme
