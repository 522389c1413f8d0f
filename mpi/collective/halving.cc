#include "mpi/collective/halving.h"

#include <algorithm>

#include "mpi/collective/combine.h"

namespace trireme {
namespace {

// Number of segments under way at a time: enough for the next one to travel while one is added.
constexpr std::size_t kWindow = 4;

struct Range {
  std::int64_t first;
  std::int64_t count;
};

int reversed(int rank, int size) {
  int result = 0;
  for (int bit = 1; bit < size; bit <<= 1) {
    result = 2 * result + ((rank & bit) != 0 ? 1 : 0);
  }
  return result;
}

// Returns the elements of the blocks of all ranks that agree with `rank` in the bits below
// `stride`, as ascending ranges of at most one segment.
std::vector<Range> segments_of(const View& data, int size, int rank, int stride, BlockOrder order) {
  std::vector<std::int64_t> blocks;
  for (int owner = rank % stride; owner < size; owner += stride) {
    blocks.push_back(order == BlockOrder::by_rank ? owner : reversed(owner, size));
  }
  std::sort(blocks.begin(), blocks.end());
  const std::int64_t most = kSegmentBytes / size_of(data.dtype);
  std::vector<Range> segments;
  for (std::size_t i = 0; i < blocks.size();) {
    const std::size_t begin = i;
    while (i < blocks.size() && blocks[i] == blocks[begin] + static_cast<std::int64_t>(i - begin)) {
      ++i;
    }
    const std::int64_t end = data.count * (blocks[i - 1] + 1) / size;
    for (std::int64_t at = data.count * blocks[begin] / size; at < end; at += most) {
      segments.push_back({at, std::min(most, end - at)});
    }
  }
  return segments;
}

TransferId send_segment(Exchange& exchange, const View& data, const Range& range, int to) {
  const View part = data.slice(range.first, range.count);
  return exchange.send(part.data, part.bytes(), to);
}

}  // namespace

void halve(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op, BlockOrder order) {
  const int rank = exchange.rank();
  std::byte* const slots = scratch.bytes(static_cast<std::int64_t>(kWindow) * kSegmentBytes);
  for (int bit = 1; bit < exchange.size(); bit <<= 1) {
    const int partner = rank ^ bit;
    const auto kept = segments_of(data, exchange.size(), rank, 2 * bit, order);
    const auto given = segments_of(data, exchange.size(), partner, 2 * bit, order);
    std::vector<TransferId> receiving(kept.size());
    std::vector<TransferId> sending(given.size());
    const auto slot = [&](std::size_t i) {
      return slots + static_cast<std::int64_t>(i % kWindow) * kSegmentBytes;
    };
    for (std::size_t i = 0; i < std::max(kept.size(), given.size()) + kWindow; ++i) {
      if (i >= kWindow && i - kWindow < kept.size()) {
        const View part = data.slice(kept[i - kWindow].first, kept[i - kWindow].count);
        exchange.wait(receiving[i - kWindow]);
        combine(part, slot(i), op);
      }
      if (i >= kWindow && i - kWindow < given.size()) {
        exchange.wait(sending[i - kWindow]);
      }
      if (i < kept.size()) {
        receiving[i] = exchange.recv(slot(i), kept[i].count * size_of(data.dtype), partner);
      }
      if (i < given.size()) {
        sending[i] = send_segment(exchange, data, given[i], partner);
      }
    }
  }
}

void double_back(Exchange& exchange, const View& data, BlockOrder order) {
  const int rank = exchange.rank();
  for (int bit = exchange.size() / 2; bit > 0; bit >>= 1) {
    const int partner = rank ^ bit;
    for (const Range& range : segments_of(data, exchange.size(), partner, 2 * bit, order)) {
      const View part = data.slice(range.first, range.count);
      exchange.recv(part.data, part.bytes(), partner);
    }
    for (const Range& range : segments_of(data, exchange.size(), rank, 2 * bit, order)) {
      send_segment(exchange, data, range, partner);
    }
    exchange.wait_all();
  }
}

}  // namespace trireme
