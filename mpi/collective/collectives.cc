#include "mpi/collective/collectives.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "mpi/blocks.h"
#include "mpi/collective/combine.h"
#include "mpi/collective/halving.h"
#include "mpi/collective/halving_tree.h"

namespace trireme {
namespace {

// bf16 is widened and reduced this many elements at a time, which bounds the memory.
constexpr std::int64_t kWidenedElements = std::int64_t{4} << 20;

bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

View f32_view(float* data, std::int64_t count) { return {data, count, DType::f32, Device{}}; }

// Both partners of a step add the same two sums, so all end with the same bits.
void recursive_doubling(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  std::byte* const received = scratch.bytes(data.bytes());
  for (int bit = 1; bit < exchange.size(); bit <<= 1) {
    const int partner = exchange.rank() ^ bit;
    exchange.recv(received, data.bytes(), partner);
    exchange.send(data.data, data.bytes(), partner);
    exchange.wait_all();
    combine(data, received, op);
  }
}

void all_reduce_in_type(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  if (!is_power_of_two(exchange.size())) {
    reduce_up(exchange, scratch, data, op);
    send_down(exchange, data, 0);
  } else if (data.bytes() <= kSmallBytes) {
    recursive_doubling(exchange, scratch, data, op);
  } else {
    halve(exchange, scratch, data, op, BlockOrder::bit_reversed);
    double_back(exchange, data, BlockOrder::bit_reversed);
  }
}

void reduce_scatter_in_type(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  if (is_power_of_two(exchange.size())) {
    halve(exchange, scratch, data, op, BlockOrder::by_rank);
  } else {
    all_reduce_in_type(exchange, scratch, data, op);
  }
}

void ring_all_gather(Exchange& exchange, const View& data) {
  const int size = exchange.size();
  const int rank = exchange.rank();
  const std::int64_t block = data.count / size;
  for (int step = 0; step < size - 1; ++step) {
    const View out = data.slice((rank - step + size) % size * block, block);
    const View in = data.slice((rank - step - 1 + size) % size * block, block);
    run_recv(exchange, in, (rank - 1 + size) % size, kCollectiveTag);
    run_send(exchange, out, (rank + 1) % size, kCollectiveTag);
    exchange.wait_all();
  }
}

class TransferAlgorithms : public Algorithms {
 public:
  void all_reduce(Exchange& exchange, View data, ReduceOp op) override {
    run_all_reduce(exchange, scratch_, data, op);
  }
  void reduce_scatter(Exchange& exchange, View data, ReduceOp op) override {
    run_reduce_scatter(exchange, scratch_, data, op);
  }
  void all_gather(Exchange& exchange, View data) override { run_all_gather(exchange, data); }
  void all_to_all(Exchange& exchange, const AllToAll& blocks) override {
    run_all_to_all(exchange, blocks);
  }
  void broadcast(Exchange& exchange, View data, int root) override {
    run_broadcast(exchange, data, root);
  }
  void barrier(Exchange& exchange) override { run_barrier(exchange); }

 private:
  Scratch scratch_;
};

}  // namespace

std::byte* Scratch::bytes(std::int64_t n) {
  if (static_cast<std::int64_t>(bytes_.size()) < n) {
    bytes_.resize(static_cast<std::size_t>(n));
  }
  return bytes_.data();
}

float* Scratch::widened(std::int64_t n) {
  if (static_cast<std::int64_t>(widened_.size()) < n) {
    widened_.resize(static_cast<std::size_t>(n));
  }
  return widened_.data();
}

void run_all_reduce(Exchange& exchange, Scratch& scratch, View data, ReduceOp op) {
  if (data.dtype != DType::bf16) {
    all_reduce_in_type(exchange, scratch, data, op);
    return;
  }
  for (std::int64_t first = 0; first < data.count; first += kWidenedElements) {
    const std::int64_t n = std::min(kWidenedElements, data.count - first);
    auto* const narrowed = static_cast<bf16*>(data.data) + first;
    float* const wide = scratch.widened(n);
    widen(narrowed, wide, n);
    all_reduce_in_type(exchange, scratch, f32_view(wide, n), op);
    exchange.wait_all();
    narrow(wide, narrowed, n);
  }
}

void run_reduce_scatter(Exchange& exchange, Scratch& scratch, View data, ReduceOp op) {
  if (data.dtype != DType::bf16) {
    reduce_scatter_in_type(exchange, scratch, data, op);
    return;
  }
  const int size = exchange.size();
  const std::int64_t block = data.count / size;
  const std::int64_t most = std::max<std::int64_t>(kWidenedElements / size, 1);
  for (std::int64_t first = 0; first < block; first += most) {
    const std::int64_t n = std::min(most, block - first);
    auto* const narrowed = static_cast<bf16*>(data.data) + first;
    float* const wide = scratch.widened(n * size);
    for (int r = 0; r < size; ++r) {
      widen(narrowed + r * block, wide + r * n, n);
    }
    reduce_scatter_in_type(exchange, scratch, f32_view(wide, n * size), op);
    exchange.wait_all();
    narrow(wide + exchange.rank() * n, narrowed + exchange.rank() * block, n);
  }
}

void run_all_gather(Exchange& exchange, View data) {
  if (is_power_of_two(exchange.size())) {
    double_back(exchange, data, BlockOrder::by_rank);
  } else {
    ring_all_gather(exchange, data);
  }
}

// Rank r gives to r + d and takes from r - d, for d = 1, 2, ...: no rank is asked by all at once.
void run_all_to_all(Exchange& exchange, const AllToAll& blocks) {
  const int size = exchange.size();
  const auto first_of = [](std::span<const std::int64_t> counts, int r) {
    return std::accumulate(counts.begin(), counts.begin() + r, std::int64_t{0});
  };
  const auto given = [&](int r) {
    return blocks.send.slice(first_of(blocks.send_counts, r),
                             blocks.send_counts[static_cast<std::size_t>(r)]);
  };
  const auto taken = [&](int r) {
    return blocks.recv.slice(first_of(blocks.recv_counts, r),
                             blocks.recv_counts[static_cast<std::size_t>(r)]);
  };
  copy_block(given(exchange.rank()), taken(exchange.rank()));
  for (int distance = 1; distance < size; ++distance) {
    const int from = (exchange.rank() - distance + size) % size;
    const int to = (exchange.rank() + distance) % size;
    run_recv(exchange, taken(from), from, kCollectiveTag);
    run_send(exchange, given(to), to, kCollectiveTag);
  }
  exchange.wait_all();
}

void run_broadcast(Exchange& exchange, View data, int root) { send_down(exchange, data, root); }

void run_barrier(Exchange& exchange) {
  const int size = exchange.size();
  for (int distance = 1; distance < size; distance <<= 1) {
    exchange.recv(nullptr, 0, (exchange.rank() - distance + size) % size);
    exchange.send(nullptr, 0, (exchange.rank() + distance) % size);
    exchange.wait_all();
  }
}

void run_send(Exchange& exchange, ConstView data, int to, int tag) {
  const auto* at = static_cast<const std::byte*>(data.data);
  for (std::int64_t left = data.bytes(); left > 0;) {
    const std::int64_t n = std::min(left, kMaxTransferBytes);
    exchange.send(at, n, to, tag);
    at += n;
    left -= n;
  }
}

void run_recv(Exchange& exchange, View data, int from, int tag) {
  auto* at = static_cast<std::byte*>(data.data);
  for (std::int64_t left = data.bytes(); left > 0;) {
    const std::int64_t n = std::min(left, kMaxTransferBytes);
    exchange.recv(at, n, from, tag);
    at += n;
    left -= n;
  }
}

std::unique_ptr<Algorithms> make_transfer_algorithms() {
  return std::make_unique<TransferAlgorithms>();
}

}  // namespace trireme
