#include "src/plan/simulate/job_saves.h"

#include <algorithm>
#include <limits>

namespace trireme {
namespace {

// A resumed step stays in memory until two newer ones are complete (docs/checkpoints.md).
constexpr std::size_t kMostInMemory = 3;
constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

void JobSaves::save_in_memory(double step, double copied_at) {
  if (memory_.size() == kMostInMemory) {
    memory_.erase(memory_.begin());
  }
  memory_.push_back({step, copied_at});
}

void JobSaves::save_on_disk(double step, double durable_at) {
  // Only the newest durable save and those after it can matter. A new save starts when the one
  // before is durable, so that there are never more than two.
  if (disk_.size() > 1) {
    disk_.erase(disk_.begin(), disk_.end() - 1);
  }
  disk_.push_back({step, durable_at});
}

void JobSaves::interrupt(double at) {
  std::erase_if(disk_, [at](const Save& save) { return save.complete_at > at; });
  for (Save& save : memory_) {
    if (save.complete_at > at) {
      save.complete_at = kNever;
    }
  }
}

void JobSaves::lose(std::int64_t slot) {
  for (Save& save : memory_) {
    if (std::find(save.lost.begin(), save.lost.end(), slot) == save.lost.end()) {
      save.lost.push_back(slot);
    }
  }
}

bool JobSaves::is_whole(const Save& save) const {
  if (save.lost.empty()) {
    return true;
  }
  if (distance_ == 0 || save.complete_at == kNever) {
    return false;
  }
  return std::none_of(save.lost.begin(), save.lost.end(), [&](std::int64_t slot) {
    const std::int64_t partner = (slot + distance_) % slots_;
    return std::find(save.lost.begin(), save.lost.end(), partner) != save.lost.end();
  });
}

ResumePoint JobSaves::newest() const {
  ResumePoint point;
  if (!disk_.empty()) {
    point = {SavePlace::disk, disk_.back().step};
  }
  for (const Save& save : memory_) {
    if (is_whole(save) && (save.step >= point.step || point.place == SavePlace::nowhere)) {
      point = {SavePlace::memory, save.step};
    }
  }
  return point;
}

}  // namespace trireme
