#include "mpi/collective/small_collectives.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "mpi/collective/combine.h"
#include "mpi/collective/greeting.h"
#include "mpi/collective/halving_tree.h"

namespace trireme {
namespace {

// Holds a message to send and one to receive, each a greeting and up to `bytes` of data, and
// `extra` bytes of scratch memory.
class Messages {
 public:
  Messages(Exchange& exchange, Scratch& scratch, std::int64_t bytes, std::int64_t extra = 0)
      : exchange_(exchange), bytes_(bytes) {
    out_ = scratch.bytes(2 * kFirstMessageBytes + extra);
    in_ = out_ + kFirstMessageBytes;
    extra_ = in_ + kFirstMessageBytes;
    write_greeting(out_, exchange.label());
  }

  std::byte* out() { return out_ + kGreetingBytes; }
  std::byte* in() { return in_ + kGreetingBytes; }
  std::byte* extra() { return extra_; }
  // Starts to send the greeting and the first `bytes` of out().
  void send(int to, std::int64_t bytes) { exchange_.send(out_, kGreetingBytes + bytes, to); }
  void send(int to) { send(to, bytes_); }
  TransferId start_recv(int from, std::int64_t bytes) {
    return recv_greeting(exchange_, in_, kGreetingBytes + bytes, from);
  }
  // Waits for all transfers under way, then checks the greeting that was received.
  void finish_recv(int from) {
    exchange_.wait_all();
    check_greeting(exchange_, in_, from);
  }
  void recv(int from) {
    start_recv(from, bytes_);
    finish_recv(from);
  }

 private:
  Exchange& exchange_;
  std::int64_t bytes_;
  std::byte* out_;
  std::byte* in_;
  std::byte* extra_;
};

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

// Returns the type in which values are added: bf16 is added in f32.
DType sum_type(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

void load(const View& data, const View& sums) {
  if (data.dtype == DType::bf16) {
    widen(static_cast<const bf16*>(data.data), static_cast<float*>(sums.data), data.count);
  } else {
    copy_bytes(sums.data, data.data, data.bytes());
  }
}

void store(const View& sums, const View& data) {
  if (data.dtype == DType::bf16) {
    narrow(static_cast<const float*>(sums.data), static_cast<bf16*>(data.data), data.count);
  } else {
    copy_bytes(data.data, sums.data, data.bytes());
  }
}

// Both partners of a step add the same two sums, so all ranks end with the same bits.
void double_sums(Exchange& exchange, Messages& messages, const View& sums, ReduceOp op) {
  for (int bit = 1; bit < exchange.size(); bit <<= 1) {
    const int partner = exchange.rank() ^ bit;
    messages.start_recv(partner, sums.bytes());
    messages.send(partner);
    messages.finish_recv(partner);
    combine(sums, messages.in(), op);
  }
}

// Sums up the tree, the smallest subtree first because it is the innermost sum, and sends the
// result down again.
void sum_on_tree(Exchange& exchange, Messages& messages, const View& sums, ReduceOp op) {
  const TreePlace place = place_in_tree(exchange.rank(), exchange.size());
  for (auto child = place.children.rbegin(); child != place.children.rend(); ++child) {
    messages.recv(*child);
    combine(sums, messages.in(), op);
  }
  if (place.parent >= 0) {
    messages.start_recv(place.parent, sums.bytes());
    messages.send(place.parent);
    messages.finish_recv(place.parent);
    copy_bytes(sums.data, messages.in(), sums.bytes());
  }
  for (const int child : place.children) {
    messages.send(child);
  }
  exchange.wait_all();
}

// Returns the reduction over all ranks, in scratch memory.
View all_sums(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  const DType dtype = sum_type(data.dtype);
  Messages messages(exchange, scratch, data.count * size_of(dtype));
  const View sums{messages.out(), data.count, dtype, data.device};
  load(data, sums);
  if (std::has_single_bit(static_cast<unsigned>(exchange.size()))) {
    double_sums(exchange, messages, sums, op);
  } else {
    sum_on_tree(exchange, messages, sums, op);
  }
  return sums;
}

}  // namespace

void small_all_reduce(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  store(all_sums(exchange, scratch, data, op), data);
}

void small_reduce_scatter(Exchange& exchange, Scratch& scratch, const View& data, ReduceOp op) {
  const View sums = all_sums(exchange, scratch, data, op);
  const std::int64_t block = data.count / exchange.size();
  store(sums.slice(exchange.rank() * block, block), data.slice(exchange.rank() * block, block));
}

// Place i of the scratch memory holds the block of rank (own + i) mod n. Before the step at
// `distance`, the first `distance` places are filled.
void small_all_gather(Exchange& exchange, Scratch& scratch, const View& data) {
  const int size = exchange.size();
  const int rank = exchange.rank();
  const std::int64_t block = data.bytes() / size;
  auto* const blocks = static_cast<std::byte*>(data.data);
  Messages messages(exchange, scratch, data.bytes());
  copy_bytes(messages.out(), blocks + rank * block, block);
  for (int distance = 1; distance < size; distance <<= 1) {
    const int from = (rank + distance) % size;
    const std::int64_t bytes = std::min(distance, size - distance) * block;
    messages.start_recv(from, bytes);
    messages.send((rank - distance + size) % size, bytes);
    messages.finish_recv(from);
    copy_bytes(messages.out() + distance * block, messages.in(), bytes);
  }
  const std::int64_t behind = (size - rank) * block;
  copy_bytes(blocks + rank * block, messages.out(), behind);
  copy_bytes(blocks, messages.out() + behind, rank * block);
}

// Uses dissemination, as the barrier does: before the step at `distance`, the root and the distance
// - 1 ranks below it have the data. This takes more messages than a tree, in as many steps. But
// every rank hears from the same ranks as in the other operations, so that ranks that run another
// operation, or have another root, meet this one's greetings at once.
void small_broadcast(Exchange& exchange, Scratch& scratch, const View& data, int root) {
  const int size = exchange.size();
  const int rank = exchange.rank();
  const auto knows = [&](int r, int distance) { return (root - r + size) % size < distance; };
  Messages messages(exchange, scratch, data.bytes());
  copy_bytes(messages.out(), data.data, data.bytes());
  for (int distance = 1; distance < size; distance <<= 1) {
    const int from = (rank + distance) % size;
    const int to = (rank - distance + size) % size;
    const bool comes = knows(from, distance) && !knows(rank, distance);
    const bool goes = knows(rank, distance) && !knows(to, distance);
    messages.start_recv(from, comes ? data.bytes() : 0);
    messages.send(to, goes ? data.bytes() : 0);
    messages.finish_recv(from);
    if (comes) {
      copy_bytes(messages.out(), messages.in(), data.bytes());
    }
  }
  copy_bytes(data.data, messages.out(), data.bytes());
}

}  // namespace trireme
