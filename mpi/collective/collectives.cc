#include "mpi/collective/collectives.h"

#include <algorithm>
#include <bit>

#include "mpi/blocks.h"
#include "mpi/collective/combine.h"
#include "mpi/collective/greeting.h"
#include "mpi/collective/halving.h"
#include "mpi/collective/halving_tree.h"
#include "mpi/collective/ring.h"
#include "mpi/collective/small_collectives.h"

namespace trireme {
namespace {

// bf16 is widened and reduced this many elements at a time, which bounds the memory.
constexpr std::int64_t kWidenedElements = std::int64_t{4} << 20;

bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

View f32_view(float* data, std::int64_t count) { return {data, count, DType::f32}; }

void all_reduce_in_type(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  if (!is_power_of_two(exchange.size()) && exchange.label().order == SumOrder::any) {
    ring_reduce(exchange, scratch, data, op);
    ring_gather(exchange, data);
  } else if (!is_power_of_two(exchange.size())) {
    reduce_up(exchange, scratch, data, op);
    send_down(exchange, data, 0);
  } else {
    halve(exchange, scratch, data, op, BlockOrder::bit_reversed);
    double_back(exchange, data, BlockOrder::bit_reversed);
  }
}

void reduce_scatter_in_type(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  if (is_power_of_two(exchange.size())) {
    halve(exchange, scratch, data, op, BlockOrder::by_rank);
  } else if (exchange.label().order == SumOrder::any) {
    ring_reduce(exchange, scratch, data, op);
  } else {
    all_reduce_in_type(exchange, scratch, data, op);
  }
}

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
  if (data.bytes() <= kSmallBytes) {
    small_all_reduce(exchange, scratch, data, op);
    return;
  }
  greet(exchange, scratch);
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
  if (data.bytes() <= kSmallBytes) {
    small_reduce_scatter(exchange, scratch, data, op);
    return;
  }
  greet(exchange, scratch);
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

void run_all_gather(Exchange& exchange, Scratch& scratch, View data) {
  if (data.bytes() <= kSmallBytes) {
    small_all_gather(exchange, scratch, data);
    return;
  }
  greet(exchange, scratch);
  if (is_power_of_two(exchange.size())) {
    double_back(exchange, data, BlockOrder::by_rank);
  } else {
    ring_gather(exchange, data);
  }
}

void run_broadcast(Exchange& exchange, Scratch& scratch, View data, int root) {
  if (data.bytes() <= kSmallBytes) {
    small_broadcast(exchange, scratch, data, root);
    return;
  }
  greet(exchange, scratch);
  send_down(exchange, data, root);
}

void run_barrier(Exchange& exchange, Scratch& scratch) { greet(exchange, scratch); }

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

}  // namespace trireme
