#include "src/train/watch/straggler_watch.h"

#include "src/base/median.h"
#include "src/trace/stragglers.h"

namespace trireme {

StragglerWatch::StragglerWatch(Communicator& world, int peers, std::int64_t every)
    : world_(world), every_(every), slow_windows_(static_cast<std::size_t>(world.size()), 0) {
  if (every > 0) {
    for (const double number : gather(peers)) {
      peers_.push_back(static_cast<int>(number));
    }
  }
}

std::vector<double> StragglerWatch::gather(double own) {
  std::vector<double> all(static_cast<std::size_t>(world_.size()));
  all[static_cast<std::size_t>(world_.rank())] = own;
  world_.all_gather({all.data(), static_cast<std::int64_t>(all.size()), DType::f64}).wait();
  return all;
}

std::vector<Straggler> StragglerWatch::add(double compute_seconds) {
  if (every_ == 0) {
    return {};
  }
  window_.push_back(compute_seconds);
  if (static_cast<std::int64_t>(window_.size()) < every_) {
    return {};
  }
  const std::vector<double> medians = gather(median(window_));
  window_.clear();
  std::vector<ComputeTime> times;
  for (std::size_t rank = 0; rank < medians.size(); ++rank) {
    times.push_back({peers_[rank], medians[rank]});
  }
  const std::vector<Slowness> judged = judge_slowness(times);
  std::vector<Straggler> named;
  for (std::size_t rank = 0; rank < judged.size(); ++rank) {
    const bool is_slow = judged[rank].straggles && judged[rank].of_peers > kSlowness;
    slow_windows_[rank] = is_slow ? slow_windows_[rank] + 1 : 0;
    if (slow_windows_[rank] == kWindows) {
      named.push_back({static_cast<int>(rank), judged[rank].of_peers, judged[rank].score});
    }
  }
  return named;
}

}  // namespace trireme
