#include "src/plan/simulate/job_nodes.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace trireme {

JobNodes::JobNodes(std::int64_t slots, std::int64_t spares)
    : slots_(slots), slot_(static_cast<std::size_t>(slots + spares)) {
  renew();
}

void JobNodes::renew() {
  empty_.clear();
  spares_.clear();
  repairs_.clear();
  active_ = slots_;
  for (std::int64_t node = 0; node < total(); ++node) {
    slot_[static_cast<std::size_t>(node)] = node < slots_ ? node : -1;
    if (node >= slots_) {
      spares_.push_back(node);
    }
  }
}

std::optional<std::int64_t> JobNodes::slot_of(std::int64_t node) const {
  const std::int64_t slot = slot_.at(static_cast<std::size_t>(node));
  return slot < 0 ? std::nullopt : std::optional(slot);
}

std::int64_t JobNodes::any_active() const {
  const auto found =
      std::find_if(slot_.begin(), slot_.end(), [](std::int64_t slot) { return slot >= 0; });
  return found == slot_.end() ? 0 : found - slot_.begin();
}

std::optional<std::int64_t> JobNodes::lose(std::int64_t node, double back) {
  const std::optional<std::int64_t> slot = slot_of(node);
  if (slot) {
    slot_[static_cast<std::size_t>(node)] = -1;
    empty_.push_back(*slot);
    --active_;
  } else {
    const auto spare = std::find(spares_.begin(), spares_.end(), node);
    if (spare == spares_.end()) {
      return std::nullopt;  // in repair already
    }
    spares_.erase(spare);
  }
  repairs_.emplace_back(back, node);
  std::push_heap(repairs_.begin(), repairs_.end(), std::greater<>());
  return slot;
}

void JobNodes::end_repairs(double now) {
  while (!repairs_.empty() && repairs_.front().first <= now) {
    std::pop_heap(repairs_.begin(), repairs_.end(), std::greater<>());
    spares_.push_back(repairs_.back().second);
    repairs_.pop_back();
  }
}

std::int64_t JobNodes::fill() {
  while (!empty_.empty() && !spares_.empty()) {
    slot_[static_cast<std::size_t>(spares_.front())] = empty_.back();
    spares_.pop_front();
    empty_.pop_back();
    ++active_;
  }
  return std::ssize(empty_);
}

double JobNodes::next_return() const {
  return repairs_.empty() ? std::numeric_limits<double>::infinity() : repairs_.front().first;
}

}  // namespace trireme
