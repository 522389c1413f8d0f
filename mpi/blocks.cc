#include "mpi/blocks.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace trireme {
namespace {

void check_counts(std::span<const std::int64_t> counts, std::int64_t total, int size) {
  check(static_cast<int>(counts.size()) == size, "all_to_all takes one count per rank");
  const bool negative = std::any_of(counts.begin(), counts.end(), [](auto n) { return n < 0; });
  check(!negative && std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == total,
        "the counts of an all_to_all add up to its buffer");
}

}  // namespace

bool overlap(const ConstView& a, const View& b) {
  const auto* const a_first = static_cast<const char*>(a.data);
  const auto* const b_first = static_cast<const char*>(b.data);
  return a.bytes() > 0 && b.bytes() > 0 && a_first < b_first + b.bytes() &&
         b_first < a_first + a.bytes();
}

void check_blocks(const ConstView& send, std::span<const std::int64_t> send_counts,
                  const View& recv, std::span<const std::int64_t> recv_counts, int size, int rank) {
  check(send.dtype == recv.dtype, "an all_to_all is of one type");
  check_counts(send_counts, send.count, size);
  check_counts(recv_counts, recv.count, size);
  const auto own = static_cast<std::size_t>(rank);
  check(send_counts[own] == recv_counts[own],
        "a rank receives from itself what it sends to itself");
  check(!overlap(send, recv), "the buffers of an all_to_all do not overlap");
}

void copy_block(const ConstView& from, const View& to) {
  check(from.bytes() == to.bytes(), "blocks are of equal size");
  if (from.bytes() > 0 && from.data != to.data) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes()));
  }
}

}  // namespace trireme
