#include "mpi/collective/queued_communicator.h"

#include <algorithm>
#include <array>

#include "mpi/collective/collectives.h"
#include "mpi/self_communicator.h"
#include "src/base/fault.h"

namespace trireme {
namespace {

std::unique_ptr<GroupWatch> make_watch(const Transport& transport, std::string name,
                                       const Watch& watch) {
  if (watch.recorder == nullptr) {
    return nullptr;
  }
  return std::make_unique<GroupWatch>(watch, std::move(name), transport.members());
}

// Returns a body that waits for the event first. This wait counts towards the operation's deadline.
OperationQueue::Body after(const StreamEvent& ready, OperationQueue::Body body) {
  return [ready, body = std::move(body)](Exchange& exchange) {
    exchange.wait_until([&] { return ready.reached(); }, [] { return std::vector<int>(); });
    ready.wait();  // rethrows an error of the stream's work
    body(exchange);
  };
}

// Returns the operation's buffer. A body that captures only its address fits into std::function
// without an allocation.
View view_at(void* data, const OperationLabel& label) {
  return {data, label.bytes / size_of(label.dtype), label.dtype};
}

}  // namespace

QueuedCommunicator::QueuedCommunicator(std::unique_ptr<Transport> transport, std::string name,
                                       Exchange::Clock::duration deadline, const Watch& watch)
    : Communicator(transport->members()),
      transport_(std::move(transport)),
      deadline_(std::min<Exchange::Clock::duration>(deadline, kLongestDeadline)),
      watch_(make_watch(*transport_, std::move(name), watch)),
      algorithms_(transport_->make_algorithms()),
      queue_(*transport_, watch_.get()) {}

MemorySource& QueuedCommunicator::memory() {
  MemorySource* const own = transport_->memory();
  return own == nullptr ? host_memory() : *own;
}

// Operations of a group of one rank run at once or on the stream; all others go to the queue.
Pending QueuedCommunicator::start(const OperationRequest& request) {
  const bool on_host =
      request.from.device.kind == DeviceKind::cpu && request.into.device.kind == DeviceKind::cpu;
  check(on_host, "this communicator handles host memory only");
  if (request.kind == OperationKind::all_reduce) {
    fault("comm.all_reduce");
  }
  if (size() == 1) {
    return run_alone(request);
  }
  const OperationLabel label = label_of(request, order_);
  using Start = OperationQueue::Start;
  const StreamEvent ready = request.after == nullptr ? StreamEvent() : request.after->record();
  if (!ready.reached()) {
    return queue_.push(label, deadline_, Start::in_background, after(ready, body_of(request)));
  }
  const Start when = !is_collective(request.kind)  ? Start::at_once
                     : label.bytes <= kPromptBytes ? Start::when_waited_for
                                                   : Start::in_background;
  return queue_.push(label, deadline_, when, body_of(request));
}

OperationQueue::Body QueuedCommunicator::body_of(const OperationRequest& request) {
  switch (request.kind) {
    case OperationKind::all_reduce:
      if (request.from.data == request.into.data) {
        return [this, at = request.into.data](Exchange& exchange) {
          const OperationLabel& label = exchange.label();
          algorithms_->all_reduce(exchange, view_at(at, label), label.op);
        };
      }
      return [this, from = request.from, into = request.into](Exchange& exchange) {
        algorithms_->all_reduce_into(exchange, from, into, exchange.label().op);
      };
    case OperationKind::reduce_scatter:
      return [this, at = request.into.data](Exchange& exchange) {
        const OperationLabel& label = exchange.label();
        algorithms_->reduce_scatter(exchange, view_at(at, label), label.op);
      };
    case OperationKind::all_gather:
      return [this, at = request.into.data](Exchange& exchange) {
        algorithms_->all_gather(exchange, view_at(at, exchange.label()));
      };
    case OperationKind::all_to_all: {
      using Counts = std::vector<std::int64_t>;
      return [this, send = request.from, recv = request.into,
              to = Counts(request.send_counts.begin(), request.send_counts.end()),
              from = Counts(request.recv_counts.begin(), request.recv_counts.end())](
                 Exchange& exchange) {
        algorithms_->all_to_all(exchange, {send, to, recv, from});
      };
    }
    case OperationKind::broadcast:
      return [this, at = request.into.data](Exchange& exchange) {
        const OperationLabel& label = exchange.label();
        algorithms_->broadcast(exchange, view_at(at, label), label.root);
      };
    case OperationKind::barrier:
      return [this](Exchange& exchange) { algorithms_->barrier(exchange); };
    case OperationKind::send:
      return [data = request.from, tag = request.tag](Exchange& exchange) {
        run_send(exchange, data, exchange.label().root, tag + 1);
      };
    case OperationKind::recv:
      return [data = request.into, tag = request.tag](Exchange& exchange) {
        run_recv(exchange, data, exchange.label().root, tag + 1);
      };
  }
  throw InternalError("unknown kind of operation");
}

std::unique_ptr<Communicator> QueuedCommunicator::split(int color, int key, std::string_view name) {
  // i32 [size, 2]: all ranks' colors and keys.
  std::vector<std::array<std::int32_t, 2>> choices(static_cast<std::size_t>(size()));
  choices[static_cast<std::size_t>(rank())] = {color, key};
  all_gather({choices.data(), 2 * std::int64_t{size()}, DType::i32}).wait();
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
