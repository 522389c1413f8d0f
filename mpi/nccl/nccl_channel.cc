#include "mpi/nccl/nccl_channel.h"

#include <thread>

#include "mpi/nccl/nccl_check.h"
#include "src/base/error.h"
#include "src/device/cuda/cuda_check.h"

namespace trireme {
namespace {

constexpr std::chrono::microseconds kPause{200};

}  // namespace

NcclChannel::NcclChannel(int device, const ncclUniqueId& id, int size, int rank)
    : device_(device), queue_(device) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  cuda::cuda_check(cudaSetDevice(device_), "cudaSetDevice");
  nccl_check(ncclCommInitRankConfig(&comm_, size, id, rank, &config), "ncclCommInitRankConfig");
}

// If other ranks have failed, NCCL's clean end would wait for them; but then this channel has been
// aborted.
NcclChannel::~NcclChannel() {
  (void)cudaSetDevice(device_);
  if (!is_aborted_.load()) {
    (void)cudaStreamSynchronize(queue_.native());
    (void)ncclCommFinalize(comm_);
    ncclResult_t state = ncclInProgress;
    while (ncclCommGetAsyncError(comm_, &state) == ncclSuccess && state == ncclInProgress) {
      std::this_thread::sleep_for(kPause);
    }
    (void)ncclCommDestroy(comm_);
  }
}

void NcclChannel::finish_connecting(std::chrono::steady_clock::time_point deadline,
                                    const std::string& who) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    nccl_check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
    if (state != ncclInProgress) {
      break;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      abort();
      throw Hang(
          fmt::format("{}: NCCL did not connect all ranks in time: a rank is stopped, or NCCL "
                      "cannot reach it over the interfaces that it chose (NCCL_DEBUG=INFO shows "
                      "them, NCCL_SOCKET_IFNAME chooses)",
                      who));
    }
    std::this_thread::sleep_for(kPause);
  }
  nccl_check(state, "ncclCommInitRankConfig", comm_);
}

void NcclChannel::settle() const {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    nccl_check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
    if (state == ncclInProgress) {
      std::this_thread::yield();
    }
  }
  nccl_check(state, "an operation of NCCL", comm_);
}

ncclResult_t NcclChannel::asynchronous_error() const {
  ncclResult_t state = ncclSuccess;
  if (is_aborted_.load() || ncclCommGetAsyncError(comm_, &state) != ncclSuccess) {
    return ncclSuccess;
  }
  return state == ncclInProgress ? ncclSuccess : state;
}

void NcclChannel::abort() noexcept {
  if (!is_aborted_.exchange(true)) {
    (void)ncclCommAbort(comm_);
  }
}

}  // namespace trireme
