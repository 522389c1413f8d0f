#include "mpi/queued_communicator.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "mpi/combine.h"

namespace trireme {
namespace {

void check_reducible(const View& data) {
  check(data.dtype == DType::bf16 || is_reducible(data.dtype),
        "a reduction is over f32, f64, i32, i64 or bf16");
}

}  // namespace

QueuedCommunicator::QueuedCommunicator(std::unique_ptr<Transport> transport,
                                       Exchange::Clock::duration deadline)
    : transport_(std::move(transport)),
      deadline_(std::min<Exchange::Clock::duration>(deadline, kLongestDeadline)),
      queue_(*transport_) {}

const std::string& QueuedCommunicator::host(int rank) const { return transport_->host(rank); }

// Alone in the group, or without data, there is nothing to wait for.
Pending QueuedCommunicator::start(std::string_view name, const ConstView& data,
                                  OperationQueue::Body body) {
  check(data.device.kind == DeviceKind::cpu, "this communicator moves host memory");
  if (size() == 1) {
    return Pending();
  }
  return queue_.push(name, data.bytes(), deadline_, std::move(body));
}

Pending QueuedCommunicator::all_reduce(View data, ReduceOp op) {
  check_reducible(data);
  return start("all_reduce", data, [this, data, op](Exchange& exchange) {
    run_all_reduce(exchange, scratch_, data, op);
  });
}

Pending QueuedCommunicator::reduce_scatter(View data, ReduceOp op) {
  check_reducible(data);
  check(data.count % size() == 0, "reduce_scatter takes one block a rank, all equal");
  return start("reduce_scatter", data, [this, data, op](Exchange& exchange) {
    run_reduce_scatter(exchange, scratch_, data, op);
  });
}

Pending QueuedCommunicator::all_gather(View data) {
  check(data.count % size() == 0, "all_gather takes one block a rank, all equal");
  return start("all_gather", data, [data](Exchange& exchange) { run_all_gather(exchange, data); });
}

Pending QueuedCommunicator::broadcast(View data, int root) {
  check(root >= 0 && root < size(), "the root is a rank of the group");
  return start("broadcast", data,
               [data, root](Exchange& exchange) { run_broadcast(exchange, data, root); });
}

Pending QueuedCommunicator::send(ConstView data, int to, int tag) {
  check_peer(to, tag);
  return start("send", data,
               [data, to, tag](Exchange& exchange) { run_send(exchange, data, to, tag + 1); });
}

Pending QueuedCommunicator::recv(View data, int from, int tag) {
  check_peer(from, tag);
  return start("recv", data,
               [data, from, tag](Exchange& exchange) { run_recv(exchange, data, from, tag + 1); });
}

Pending QueuedCommunicator::barrier() {
  return start("barrier", {}, [](Exchange& exchange) { run_barrier(exchange); });
}

void QueuedCommunicator::check_peer(int peer, int tag) const {
  check(peer >= 0 && peer < size() && peer != rank(), "a peer is another rank of the group");
  check(tag >= 0 && tag <= kMaxUserTag, "a tag lies between 0 and kMaxUserTag");
}

std::unique_ptr<Communicator> QueuedCommunicator::split(int color, int key) {
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
  return std::make_unique<QueuedCommunicator>(transport_->split_off(members), deadline_);
}

void QueuedCommunicator::set_deadline(std::chrono::duration<double> deadline) {
  check(deadline.count() > 0, "a deadline is positive");
  const std::chrono::duration<double> longest = kLongestDeadline;
  deadline_ = std::chrono::duration_cast<Exchange::Clock::duration>(std::min(deadline, longest));
}

// The compiler does not know that the virtual call does not return.
void QueuedCommunicator::abort(ExitCode code) {
  transport_->abort(code);
  std::_Exit(static_cast<int>(code));
}

}  // namespace trireme
