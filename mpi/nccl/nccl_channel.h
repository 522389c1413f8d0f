// NcclChannel is a communicator of NCCL with a stream of its own, on which its operations run one
// after another. Owned by an NcclCommunicator. One thread starts operations and registers memory;
// abort() and asynchronous_error() may be called by another.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include <nccl.h>

#include "mpi/group_members.h"
#include "src/device/cuda/cuda_queue.h"

namespace trireme {

class NcclChannel {
 public:
  // Begins to connect `size` ranks, which all pass the id that one of them made; the channel can be
  // used once progress() has returned true. `rank` is this rank's number among them.
  NcclChannel(int device, const ncclUniqueId& id, int size, int rank);
  // Ends the communicator, or aborts it if its operations do not end within kEndLimit, or if the
  // destructor runs because of an error.
  ~NcclChannel();
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  ncclComm_t comm() const { return comm_; }
  cudaStream_t stream() const { return queue_.native(); }
  cuda::CudaQueue& queue() { return queue_; }

  // Keeps abort() from ending the communicator while operations are called. Locks nothing if
  // the channel has been aborted.
  std::unique_lock<std::mutex> use();
  // Returns whether NCCL has connected the ranks and queued the latest operations; its calls return
  // before that, as the communicator does not block. Returns true after an abort. Throws CommError.
  bool progress();
  // Returns what went wrong in operations under way; ncclSuccess if nothing did. Any thread.
  ncclResult_t asynchronous_error();
  // Makes all operations under way end without their results. Waits until the device has nothing
  // to do, because NCCL frees memory: if operations of other channels wait for other ranks, use
  // abort_all(). Any thread.
  void abort() noexcept { abort_all({this}); }
  // Aborts all channels at once.
  static void abort_all(const std::vector<NcclChannel*>& channels) noexcept;

  // Lets the communicator access device memory without a copy, until deregister_memory() or the end
  // of the channel. If it returns an error of NCCL, nothing has changed. Does nothing after an
  // abort.
  ncclResult_t register_memory(void* data, std::size_t bytes);
  void deregister_memory(void* data) noexcept;

 private:
  void end() noexcept;
  // Returns whether NCCL has connected the ranks and queued all operations, or has failed.
  bool is_settled() const;

  int device_;
  int uncaught_at_start_;
  cuda::CudaQueue queue_;
  std::mutex mutex_;  // guards the members below
  ncclComm_t comm_ = nullptr;
  bool is_aborted_ = false;
  std::map<void*, void*> registered_;  // NCCL's handles, by address
};

}  // namespace trireme
