// Implements all_to_all over transfers (collectives.h).
#include <algorithm>
#include <cstring>
#include <numeric>

#include "mpi/blocks.h"
#include "mpi/collective/collectives.h"
#include "mpi/collective/greeting.h"

namespace trireme {
namespace {

constexpr std::int64_t kSlotBytes = kGreetingBytes + kInlineBytes;

class Blocks {
 public:
  explicit Blocks(const AllToAll& all) : all_(all) {}
  ConstView given(int r) const {
    return all_.send.slice(first_of(all_.send_counts, r), count(all_.send_counts, r));
  }
  View taken(int r) const {
    return all_.recv.slice(first_of(all_.recv_counts, r), count(all_.recv_counts, r));
  }

 private:
  using Counts = std::span<const std::int64_t>;
  static std::int64_t count(Counts counts, int r) { return counts[static_cast<std::size_t>(r)]; }
  static std::int64_t first_of(Counts counts, int r) {
    return std::accumulate(counts.begin(), counts.begin() + r, std::int64_t{0});
  }
  const AllToAll& all_;
};

std::int64_t inlined(std::int64_t bytes) { return bytes <= kInlineBytes ? bytes : 0; }

// The label's `bytes` is the size of the block here, which both ends know.
void send_first(Exchange& exchange, std::byte* at, const ConstView& block, int to) {
  OperationLabel label = exchange.label();
  label.bytes = block.bytes();
  write_greeting(at, label);
  const std::int64_t bytes = inlined(block.bytes());
  if (bytes > 0) {
    std::memcpy(at + kGreetingBytes, block.data, static_cast<std::size_t>(bytes));
  }
  exchange.send(at, kGreetingBytes + bytes, to);
}

void check_first(const Exchange& exchange, const std::byte* at, const View& block, int from) {
  const OperationLabel theirs = check_greeting(exchange, at, from);
  if (theirs.bytes != block.bytes()) {
    throw CommError(fmt::format(
        "{} sends {} bytes in an all_to_all where {} expects {}: the ranks run different "
        "operations",
        exchange.describe(from), theirs.bytes, exchange.describe(exchange.rank()), block.bytes()));
  }
}

}  // namespace

// In step d, rank r sends to r + d and receives from r - d, so that the ranks do not all send to
// the same one. After the greeting, all first messages belong to an all_to_all and fit their slots.
void run_all_to_all(Exchange& exchange, Scratch& scratch, const AllToAll& all) {
  greet(exchange, scratch);
  const Blocks blocks(all);
  const int size = exchange.size();
  const auto from = [&](int distance) { return (exchange.rank() - distance + size) % size; };
  const auto to = [&](int distance) { return (exchange.rank() + distance) % size; };
  std::byte* const slots = scratch.bytes(2 * size * kSlotBytes);
  const auto in = [&](int distance) { return slots + 2 * distance * kSlotBytes; };
  const auto out = [&](int distance) { return in(distance) + kSlotBytes; };
  for (int d = 1; d < size; ++d) {
    exchange.recv_of_any_length(in(d), kGreetingBytes + inlined(blocks.taken(from(d)).bytes()),
                                kSlotBytes, from(d));
    send_first(exchange, out(d), blocks.given(to(d)), to(d));
  }
  exchange.wait_all();
  for (int d = 1; d < size; ++d) {
    check_first(exchange, in(d), blocks.taken(from(d)), from(d));
  }
  copy_block(blocks.given(exchange.rank()), blocks.taken(exchange.rank()));
  for (int d = 1; d < size; ++d) {
    const View taken = blocks.taken(from(d));
    if (const std::int64_t bytes = taken.bytes(); bytes > kInlineBytes) {
      run_recv(exchange, taken, from(d), kCollectiveTag);
    } else if (bytes > 0) {
      std::memcpy(taken.data, in(d) + kGreetingBytes, static_cast<std::size_t>(bytes));
    }
    if (const ConstView given = blocks.given(to(d)); given.bytes() > kInlineBytes) {
      run_send(exchange, given, to(d), kCollectiveTag);
    }
  }
  exchange.wait_all();
}

}  // namespace trireme
