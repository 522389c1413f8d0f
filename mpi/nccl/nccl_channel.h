// NcclChannel is a communicator of NCCL with a stream of its own, on which its operations run one
// after another. Owned by an NcclCommunicator. One thread starts operations; abort() may be called
// by another.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include <nccl.h>

#include "mpi/group_members.h"
#include "src/device/cuda/cuda_queue.h"

namespace trireme {

class NcclChannel {
 public:
  // Begins to connect `size` ranks, which all pass the id that one of them made;
  // finish_connecting() must follow. `rank` is this rank's number among them.
  NcclChannel(int device, const ncclUniqueId& id, int size, int rank);
  ~NcclChannel();
  NcclChannel(const NcclChannel&) = delete;
  NcclChannel& operator=(const NcclChannel&) = delete;

  // Waits until all ranks are connected. `who` begins the message of an error.
  void finish_connecting(std::chrono::steady_clock::time_point deadline, const std::string& who);

  ncclComm_t comm() const { return comm_; }
  cudaStream_t stream() const { return queue_.native(); }
  cuda::CudaQueue& queue() { return queue_; }

  // Waits until NCCL has queued the operations that were called last. Throws CommError.
  void settle() const;
  // Returns what went wrong in operations under way; ncclSuccess if nothing did. Any thread.
  ncclResult_t asynchronous_error() const;
  // Makes all operations under way end without their results. Any thread; once.
  void abort() noexcept;

 private:
  int device_;
  cuda::CudaQueue queue_;
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> is_aborted_ = false;
};

}  // namespace trireme
