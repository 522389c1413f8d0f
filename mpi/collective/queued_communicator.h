// QueuedCommunicator is a Communicator over any transport. It owns the transport, its algorithms,
// the queue that runs them and its entry in the rank's flight recorder. Thread rule:
// communicator.h.
#pragma once

#include "mpi/collective/algorithms.h"
#include "mpi/collective/operation_queue.h"

namespace trireme {

inline constexpr std::chrono::minutes kDefaultDeadline{10};
// Collective operations up to this size do not wake the progress thread.
inline constexpr std::int64_t kPromptBytes = 64 << 10;
// Longer deadlines are cut to this one, because they could overflow the clock's 64 bits of
// nanoseconds.
inline constexpr std::chrono::hours kLongestDeadline{24 * 365 * 100};

class QueuedCommunicator : public Communicator {
 public:
  // The objects that `watch` points to outlive the communicator and all that are split from it.
  QueuedCommunicator(std::unique_ptr<Transport> transport, std::string name,
                     Exchange::Clock::duration deadline = kDefaultDeadline,
                     const Watch& watch = {});

  MemorySource& memory() override;
  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override;
  void set_sum_order(SumOrder order) override { order_ = order; }
  void set_deadline(std::chrono::duration<double> deadline) override;

 private:
  Pending start(const OperationRequest& request) override;
  OperationQueue::Body body_of(const OperationRequest& request);

  std::unique_ptr<Transport> transport_;
  Exchange::Clock::duration deadline_;
  SumOrder order_ = SumOrder::tree;
  std::unique_ptr<GroupWatch> watch_;  // null if the group is not watched
  std::unique_ptr<Algorithms> algorithms_;
  OperationQueue queue_;  // destroyed first, because its thread uses the other members
};

}  // namespace trireme
