#include "mpi/collective/halving_tree.h"

#include <algorithm>

#include "mpi/collective/combine.h"
#include "src/base/tree_middle.h"

namespace trireme {
namespace {

std::int64_t segment_elements(const View& data) { return kSegmentBytes / size_of(data.dtype); }

}  // namespace

TreePlace place_in_tree(int rank, int size) {
  TreePlace place;
  int lo = 0;
  int hi = size;
  while (hi - lo > 1) {
    const int mid = tree_middle(lo, hi);
    if (rank < mid) {
      if (rank == lo) {
        place.children.push_back(mid);
      }
      hi = mid;
    } else {
      if (rank == mid) {
        place.parent = lo;
      }
      lo = mid;
    }
  }
  return place;
}

void reduce_up(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  TreePlace place = place_in_tree(exchange.rank(), exchange.size());
  // The smallest subtree is the innermost sum, so it comes first.
  std::reverse(place.children.begin(), place.children.end());
  const auto slots = static_cast<std::int64_t>(place.children.size());
  std::byte* const received = scratch.bytes(slots * kSegmentBytes);
  const std::int64_t most = segment_elements(data);
  for (std::int64_t first = 0; first < data.count; first += most) {
    const View part = data.slice(first, std::min(most, data.count - first));
    std::vector<TransferId> receiving;
    for (std::size_t i = 0; i < place.children.size(); ++i) {
      receiving.push_back(exchange.recv(received + static_cast<std::int64_t>(i) * kSegmentBytes,
                                        part.bytes(), place.children[i]));
    }
    for (std::size_t i = 0; i < receiving.size(); ++i) {
      exchange.wait(receiving[i]);
      combine(part, received + static_cast<std::int64_t>(i) * kSegmentBytes, op);
    }
    if (place.parent >= 0) {
      exchange.send(part.data, part.bytes(), place.parent);
    }
  }
  exchange.wait_all();
}

void send_down(Exchange& exchange, const View& data, int root) {
  const int size = exchange.size();
  const TreePlace place = place_in_tree((exchange.rank() - root + size) % size, size);
  const std::int64_t most = segment_elements(data);
  std::vector<TransferId> receiving;
  for (std::int64_t first = 0; place.parent >= 0 && first < data.count; first += most) {
    const View part = data.slice(first, std::min(most, data.count - first));
    receiving.push_back(exchange.recv(part.data, part.bytes(), (place.parent + root) % size));
  }
  for (std::int64_t first = 0; first < data.count; first += most) {
    const View part = data.slice(first, std::min(most, data.count - first));
    if (place.parent >= 0) {
      exchange.wait(receiving[static_cast<std::size_t>(first / most)]);
    }
    for (const int child : place.children) {
      exchange.send(part.data, part.bytes(), (child + root) % size);
    }
  }
  exchange.wait_all();
}

}  // namespace trireme
