#include "benchmarks/coll/coll_check.h"

#include <cstring>

namespace trireme {

void CollCheck::fill(const View& data) const {
  if (data.count == 0) {
    return;
  }
  std::memset(data.data, 0xA5, static_cast<std::size_t>(data.bytes()));
  if (task_.op == Collective::all_gather) {
    const View own = block(data, rank_);
    inputs_.fill(own, rank_, rank_ * own.count);
  } else if (!has_root(task_.op) || rank_ == task_.root) {
    inputs_.fill(data, rank_, 0);
  }
}

std::int64_t CollCheck::count_wrong(const View& data) const {
  const std::int64_t n = data.count / size_;
  switch (task_.op) {
    case Collective::all_reduce:
      return inputs_.count_wrong(data, task_.reduction, 0);
    case Collective::reduce_scatter:
      return inputs_.count_wrong(block(data, rank_), task_.reduction, rank_ * n);
    case Collective::broadcast:
      return inputs_.count_wrong(data, task_.root, 0);
    case Collective::barrier:
      return 0;
    case Collective::all_gather:
    case Collective::all_to_all:
      break;
  }
  std::int64_t wrong = 0;
  for (int r = 0; r < size_; ++r) {
    // The part from rank r: in an all-gather its own part, otherwise what it had for this rank.
    const std::int64_t first = (task_.op == Collective::all_gather ? r : rank_) * n;
    wrong += inputs_.count_wrong(block(data, r), r, first);
  }
  return wrong;
}

}  // namespace trireme
