#include "mpi/collective/queued_communicator.h"

#include <algorithm>
#include <array>

#include "mpi/blocks.h"
#include "mpi/collective/collectives.h"
#include "mpi/collective/combine.h"
#include "src/base/fault.h"

namespace trireme {
namespace {

void check_reducible(const View& data) {
  check(data.dtype == DType::bf16 || is_reducible(data.dtype),
        "a reduction is over f32, f64, i32, i64 or bf16");
}

std::unique_ptr<GroupWatch> make_watch(const Transport& transport, std::string name,
                                       const Watch& watch) {
  if (watch.recorder == nullptr) {
    return nullptr;
  }
  GroupMembers members{std::move(name), transport.rank(), {}, {}};
  for (int rank = 0; rank < transport.size(); ++rank) {
    members.world_ranks.push_back(transport.world_rank(rank));
    members.hosts.push_back(transport.host(rank));
  }
  return std::make_unique<GroupWatch>(watch, std::move(members));
}

// The operation's buffer. Bodies that keep its address alone need no memory of their own.
View view_at(void* data, const OperationLabel& label) {
  return {data, label.bytes / size_of(label.dtype), label.dtype, Device{}};
}

}  // namespace

QueuedCommunicator::QueuedCommunicator(std::unique_ptr<Transport> transport, std::string name,
                                       Exchange::Clock::duration deadline, const Watch& watch)
    : transport_(std::move(transport)),
      deadline_(std::min<Exchange::Clock::duration>(deadline, kLongestDeadline)),
      watch_(make_watch(*transport_, std::move(name), watch)),
      algorithms_(transport_->make_algorithms()),
      queue_(*transport_, watch_.get()) {}

const std::string& QueuedCommunicator::host(int rank) const { return transport_->host(rank); }

MemorySource& QueuedCommunicator::memory() {
  MemorySource* const own = transport_->memory();
  return own == nullptr ? host_memory() : *own;
}

// Alone in the group, or without data, there is nothing to wait for.
Pending QueuedCommunicator::start(OperationKind kind, const ConstView& data,
                                  OperationQueue::Body body, ReduceOp op, int root) {
  check(data.device.kind == DeviceKind::cpu, "this communicator handles host memory only");
  if (size() == 1) {
    return Pending();
  }
  OperationLabel label;
  label.kind = kind;
  label.dtype = data.dtype;
  label.op = op;
  label.root = root;
  label.order = order_;
  label.bytes = data.bytes();
  using Start = OperationQueue::Start;
  const Start when = !is_collective(kind)          ? Start::at_once
                     : label.bytes <= kPromptBytes ? Start::when_waited_for
                                                   : Start::in_background;
  return queue_.push(label, deadline_, when, std::move(body));
}

Pending QueuedCommunicator::all_reduce(ConstView from, View into, ReduceOp op) {
  check_reducible(into);
  check(from.dtype == into.dtype && from.count == into.count,
        "all_reduce reads and writes buffers of one type and size");
  fault("comm.all_reduce");
  if (from.data == into.data) {
    const auto body = [this, at = into.data](Exchange& exchange) {
      const OperationLabel& label = exchange.label();
      algorithms_->all_reduce(exchange, view_at(at, label), label.op);
    };
    return start(OperationKind::all_reduce, into, body, op);
  }
  check(!overlap(from, into), "the buffers of an all_reduce are the same or do not overlap");
  if (size() == 1) {
    copy_block(from, into);
  }
  const auto body = [this, from, into](Exchange& exchange) {
    algorithms_->all_reduce_into(exchange, from, into, exchange.label().op);
  };
  return start(OperationKind::all_reduce, into, body, op);
}

Pending QueuedCommunicator::reduce_scatter(View data, ReduceOp op) {
  check_reducible(data);
  check(data.count % size() == 0, "reduce_scatter takes one block per rank, all of equal size");
  const auto body = [this, at = data.data](Exchange& exchange) {
    const OperationLabel& label = exchange.label();
    algorithms_->reduce_scatter(exchange, view_at(at, label), label.op);
  };
  return start(OperationKind::reduce_scatter, data, body, op);
}

Pending QueuedCommunicator::all_gather(View data) {
  check(data.count % size() == 0, "all_gather takes one block per rank, all of equal size");
  return start(OperationKind::all_gather, data, [this, at = data.data](Exchange& exchange) {
    algorithms_->all_gather(exchange, view_at(at, exchange.label()));
  });
}

Pending QueuedCommunicator::all_to_all(ConstView send, std::span<const std::int64_t> send_counts,
                                       View recv, std::span<const std::int64_t> recv_counts) {
  check_blocks(send, send_counts, recv, recv_counts, size(), rank());
  if (size() == 1) {
    copy_block(send, recv);
  }
  using Counts = std::vector<std::int64_t>;
  const auto body = [this, send, recv, to = Counts(send_counts.begin(), send_counts.end()),
                     from = Counts(recv_counts.begin(), recv_counts.end())](Exchange& exchange) {
    algorithms_->all_to_all(exchange, {send, to, recv, from});
  };
  return start(OperationKind::all_to_all, send, body);
}

Pending QueuedCommunicator::broadcast(View data, int root) {
  check(root >= 0 && root < size(), "the root is a rank of the group");
  const auto body = [this, at = data.data](Exchange& exchange) {
    const OperationLabel& label = exchange.label();
    algorithms_->broadcast(exchange, view_at(at, label), label.root);
  };
  return start(OperationKind::broadcast, data, body, ReduceOp::sum, root);
}

Pending QueuedCommunicator::send(ConstView data, int to, int tag) {
  check_peer(to, tag);
  return start(
      OperationKind::send, data,
      [data, to, tag](Exchange& exchange) { run_send(exchange, data, to, tag + 1); }, ReduceOp::sum,
      to);
}

Pending QueuedCommunicator::recv(View data, int from, int tag) {
  check_peer(from, tag);
  return start(
      OperationKind::recv, data,
      [data, from, tag](Exchange& exchange) { run_recv(exchange, data, from, tag + 1); },
      ReduceOp::sum, from);
}

Pending QueuedCommunicator::barrier() {
  return start(OperationKind::barrier, {},
               [this](Exchange& exchange) { algorithms_->barrier(exchange); });
}

void QueuedCommunicator::check_peer(int peer, int tag) const {
  check(peer >= 0 && peer < size() && peer != rank(), "a peer is another rank of the group");
  check(tag >= 0 && tag <= kMaxUserTag, "a tag lies between 0 and kMaxUserTag");
}

std::unique_ptr<Communicator> QueuedCommunicator::split(int color, int key, std::string_view name) {
  // i32 [size, 2]: everybody's colour and key.
  std::vector<std::array<std::int32_t, 2>> choices(static_cast<std::size_t>(size()));
  choices[static_cast<std::size_t>(rank())] = {color, key};
  all_gather({choices.data(), 2 * std::int64_t{size()}, DType::i32, Device{}}).wait();
  const auto key_of = [&](int r) { return choices[static_cast<std::size_t>(r)][1]; };
  std::vector<int> members;
  for (int r = 0; r < size(); ++r) {
    if (choices[static_cast<std::size_t>(r)][0] == color) {
      members.push_back(r);
    }
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return key_of(a) < key_of(b); });
  const Watch watch = watch_ == nullptr ? Watch{} : watch_->next_split(color);
  auto group = std::make_unique<QueuedCommunicator>(transport_->split_off(members),
                                                    std::string(name), deadline_, watch);
  group->set_sum_order(order_);
  return group;
}

void QueuedCommunicator::set_deadline(std::chrono::duration<double> deadline) {
  check(deadline.count() > 0, "a deadline is positive");
  const std::chrono::duration<double> longest = kLongestDeadline;
  deadline_ = std::chrono::duration_cast<Exchange::Clock::duration>(std::min(deadline, longest));
}

}  // namespace trireme
