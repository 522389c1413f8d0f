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
// NCCL has no tags: messages between two ranks arrive in the order of their sends. There is one
// channel for each neighbour, direction and lane of tags (operation_request.h), so that messages of
// one lane only must be received in the order in which they are sent.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/nccl/nccl_channel.h"
#include "mpi/nccl/nccl_monitor.h"
#include "mpi/watch/group_watch.h"
#include "src/device/pool.h"

namespace trireme {

class NcclCommunicator : public Communicator {
 public:
  struct Parts {
    std::unique_ptr<Communicator> control;  // the same ranks
    Device device;
    std::shared_ptr<NcclMonitor> monitor;
    std::string name;
    Watch watch;
    std::chrono::duration<double> deadline;
  };
  // Collective.
  explicit NcclCommunicator(Parts parts);
  ~NcclCommunicator() override;

  using Communicator::split;
  std::unique_ptr<Communicator> split(int color, int key, std::string_view name) override;
  void prepare_transfers() override;
  MemorySource& memory() override;
  void set_sum_order(SumOrder order) override { order_ = order; }
  void set_deadline(std::chrono::duration<double> deadline) override;

 private:
  struct LaneKey {
    int peer = 0;
    bool sends = false;
    int lane = 0;
    friend auto operator<=>(const LaneKey&, const LaneKey&) = default;
  };

  Pending start(const OperationRequest& request) override;
  // These queue the operation on the channel's stream.
  void queue_collective(const OperationRequest& request);
  void queue_all_reduce(const OperationRequest& request);
  void queue_reduce_scatter(const OperationRequest& request);
  void queue_all_to_all(const OperationRequest& request);
  void queue_barrier();
  void queue_transfer(NcclChannel& channel, const OperationRequest& request);
  // Receives this rank's block of every rank's `from`, which is cut into blocks of `block`
  // elements; the last ones may be shorter or empty. Returns the blocks, which start `stride`
  // elements apart.
  Buffer gather_blocks(const ConstView& from, std::int64_t block, std::int64_t stride);

  std::unique_ptr<NcclChannel> connect(int size, int rank, const ncclUniqueId& id);
  NcclChannel& lane(const OperationRequest& request);
  std::chrono::steady_clock::time_point connect_deadline() const;
  std::string own_name() const;

  Parts parts_;
  SumOrder order_ = SumOrder::tree;
  std::unique_ptr<GroupWatch> watch_;  // null if the group is not watched
  Pool scratch_;                       // used in the order of the collective channel
  std::unique_ptr<NcclChannel> collective_;
  std::map<LaneKey, std::unique_ptr<NcclChannel>> lanes_;
  std::int64_t collectives_ = 0;  // number of the next collective operation
  std::int64_t transfers_ = 0;    // number of the next send or receive
};

}  // namespace trireme
