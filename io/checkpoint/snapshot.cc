#include "io/checkpoint/snapshot.h"

#include <utility>

#include "io/checkpoint/staging.h"

namespace trireme {

Snapshot make_snapshot(ShardPlan plan, std::byte* image, SnapshotFill fill) {
  Snapshot snapshot{image, plan.tensors.empty() ? 0 : plan.bytes, plan.tensors, {}, {}};
  std::byte* const filled = fill.key != nullptr && fill.plain != nullptr ? fill.plain : image;
  if (fill.key != nullptr) {
    snapshot.sealer =
        std::make_shared<ImageSealer>(*fill.key, fill.file, filled, image, plan.bytes);
  }
  const bool later = fill.ready != nullptr;
  auto work = [plan = std::move(plan), filled, fill = std::move(fill)] {
    if (fill.ready != nullptr) {
      fill.ready();
    }
    fill_image(plan, filled, fill.threads);
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
