// NcclCommunicator moves tensors between CUDA devices with NCCL. It owns a communicator of the same
// ranks for messages of the host, a channel for collective operations, and, from
// prepare_transfers() on, channels to its two neighbours in the ring of ranks. Thread rule:
// communicator.h.
//
// Sums in tree order (SumOrder::tree) take three steps: each rank sends block r of its data to rank
// r, adds the blocks that it has received in the order of the tree, and sends the result to all.
// That moves as many bytes as a ring all-reduce: 2 (n-1)/n of the data in and out of each device.
// With SumOrder::any, NCCL's own reductions are used.
//
// NCCL's communicators do not block: a call may return before the operation is queued on the
// stream. Each call is therefore followed by settle(), which waits for that with a deadline.
//
// NCCL has no tags: messages between two ranks arrive in the order of their sends. There is one
// channel for each neighbour, direction and lane of tags (operation_request.h), so that messages of
// one lane only must be received in the order in which they are sent.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/links/link_book.h"
#include "mpi/nccl/nccl_channel.h"
#include "mpi/nccl/nccl_memory.h"
#include "mpi/nccl/nccl_monitor.h"
#include "mpi/watch/group_watch.h"
#include "src/device/pool.h"

namespace trireme {

inline constexpr std::chrono::duration<double> kLongestNcclDeadline =
    std::chrono::hours(24 * 365 * 100);

class NcclCommunicator : public Communicator {
 public:
  struct Parts {
    std::unique_ptr<Communicator> control;  // the same ranks
    Device device;
    std::shared_ptr<NcclMonitor> monitor;
    std::shared_ptr<NcclMemory> memory;
    std::string name;
    Watch watch;
    std::chrono::duration<double> deadline;
    LinkBook* links = nullptr;  // where the links of the group are noted; null for nowhere
  };
  // Collective.
  explicit NcclCommunicator(Parts parts);
  ~NcclCommunicator() override;

  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override;
  void prepare_transfers() override;
  MemorySource& memory() override { return *parts_.memory; }
  void set_sum_order(SumOrder order) override { order_ = order; }
  void set_deadline(std::chrono::duration<double> deadline) override;

 private:
  struct LaneKey {
    int peer = 0;
    bool sends = false;
    int lane = 0;
    friend auto operator<=>(const LaneKey&, const LaneKey&) = default;
  };

  // Started is an operation that is being queued on its channel.
  struct Started {
    NcclChannel& channel;
    OperationLabel label;
    FlightTicket ticket = 0;
  };
  Pending start(const OperationRequest& request) override;
  Started begin(NcclChannel& channel, OperationLabel label);
  // Runs queue(), which queues the operation. If it throws, all groups of the world fail.
  template <class Queue>
  void queue_or_fail(const Started& started, Queue queue);
  // Runs call(), which calls NCCL, and waits until NCCL has done its part.
  template <class Call>
  void call(const Started& started, Call call);
  void settle(const Started& started);

  // These queue the operation on the channel's stream.
  void queue_collective(const Started& started, const OperationRequest& request);
  void queue_all_reduce(const Started& started, const OperationRequest& request);
  void queue_reduce_scatter(const Started& started, const OperationRequest& request);
  void queue_all_gather(const Started& started, const View& into);
  void queue_all_to_all(const Started& started, const OperationRequest& request);
  void queue_barrier(const Started& started);
  void queue_transfer(const Started& started, const OperationRequest& request);
  // Receives this rank's block of every rank's `from`, which is cut into blocks of `block`
  // elements; the last ones may be shorter or empty. Returns the blocks, which start `stride`
  // elements apart.
  Buffer gather_blocks(const Started& started, const ConstView& from, std::int64_t block,
                       std::int64_t stride);

  // label: names the wait for the other ranks in the flight recorder.
  std::unique_ptr<NcclChannel> connect(int size, int rank, const ncclUniqueId& id,
                                       const OperationLabel& label);
  // Makes NCCL open the connections that later operations will use, so that faults appear at the
  // start, and NCCL logs how the ranks are linked.
  void meet();
  void meet_over(int lane, int peer, bool sends);
  // Notes the links that NCCL has logged; ranks[i] is the rank in this group that NCCL numbers i.
  void note_links(const std::vector<int>& ranks);
  NcclChannel& lane(const OperationRequest& request);
  std::chrono::steady_clock::duration limit() const;

  int uncaught_at_start_;  // exceptions
  Parts parts_;
  SumOrder order_ = SumOrder::tree;
  std::unique_ptr<GroupWatch> watch_;  // null if the group is not watched
  Pool scratch_;                       // used in the order of the collective channel
  std::string links_;                  // for messages; empty if unknown
  std::int64_t collectives_ = 0;       // number of the next collective operation
  std::int64_t transfers_ = 0;         // number of the next send or receive
  std::unique_ptr<NcclChannel> collective_;
  std::map<LaneKey, std::unique_ptr<NcclChannel>> lanes_;
};

}  // namespace trireme
