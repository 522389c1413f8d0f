// QueuedCommunicator: a Communicator over any transport. Owns the transport and the queue whose
// thread drives it. Thread rule: communicator.h.
#pragma once

#include "mpi/collectives.h"
#include "mpi/operation_queue.h"

namespace trireme {

inline constexpr std::chrono::minutes kDefaultDeadline{10};
// As good as none: a later moment would overflow the clock's 64 bits of nanoseconds.
inline constexpr std::chrono::hours kLongestDeadline{24 * 365 * 100};

class QueuedCommunicator : public Communicator {
 public:
  explicit QueuedCommunicator(std::unique_ptr<Transport> transport,
                              Exchange::Clock::duration deadline = kDefaultDeadline);

  int rank() const override { return transport_->rank(); }
  int size() const override { return transport_->size(); }
  const std::string& host(int rank) const override;

  Pending all_reduce(View data, ReduceOp op) override;
  Pending reduce_scatter(View data, ReduceOp op) override;
  Pending all_gather(View data) override;
  Pending broadcast(View data, int root) override;
  Pending send(ConstView data, int to, int tag) override;
  Pending recv(View data, int from, int tag) override;
  Pending barrier() override;

  std::unique_ptr<Communicator> split(int color, int key) override;
  void set_deadline(std::chrono::duration<double> deadline) override;
  [[noreturn]] void abort(ExitCode code) override;

 private:
  Pending start(std::string_view name, const ConstView& data, OperationQueue::Body body);
  void check_peer(int peer, int tag) const;

  std::unique_ptr<Transport> transport_;
  Exchange::Clock::duration deadline_;
  Scratch scratch_;
  OperationQueue queue_;  // ends first: its thread uses the others
};

}  // namespace trireme
