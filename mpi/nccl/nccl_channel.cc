#include "mpi/nccl/nccl_channel.h"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "mpi/nccl/nccl_check.h"
#include "src/device/cuda/cuda_check.h"

namespace trireme {
namespace {

constexpr std::chrono::microseconds kPause{200};
constexpr std::chrono::seconds kEndLimit{10};

// Calls is_over() until it returns true or the limit has passed. Returns its last result.
template <class IsOver>
bool ends_in_time(IsOver is_over) {
  const auto deadline = std::chrono::steady_clock::now() + kEndLimit;
  while (!is_over()) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

NcclChannel::NcclChannel(int device, const ncclUniqueId& id, int size, int rank)
    : device_(device),
      uncaught_at_start_(std::uncaught_exceptions()),
      queue_(device, cuda::QueueUse::work) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  cuda::use_device(device_);
  nccl_check(ncclCommInitRankConfig(&comm_, size, id, rank, &config), "ncclCommInitRankConfig");
}

NcclChannel::~NcclChannel() {
  (void)cudaSetDevice(device_);
  if (!is_aborted_) {
    end();
  }
}

// If other ranks have failed, a regular end of NCCL's communicator would wait for them in vain.
void NcclChannel::end() noexcept {
  const bool is_error = std::uncaught_exceptions() > uncaught_at_start_;
  const auto is_idle = [&] { return cudaStreamQuery(queue_.native()) != cudaErrorNotReady; };
  if (is_error || !ends_in_time(is_idle)) {
    abort();
    return;
  }
  while (!registered_.empty()) {
    deregister_memory(registered_.begin()->first);
  }
  (void)ncclCommFinalize(comm_);
  if (!ends_in_time([this] { return is_settled(); })) {
    abort();
    return;
  }
  (void)ncclCommDestroy(comm_);
}

std::unique_lock<std::mutex> NcclChannel::use() {
  std::unique_lock lock(mutex_);
  if (is_aborted_) {
    lock.unlock();
  }
  return lock;
}

bool NcclChannel::progress() {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) {
    return true;
  }
  ncclResult_t state = ncclInProgress;
  nccl_check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
  nccl_check(state, "an operation of NCCL", comm_);
  return state == ncclSuccess;
}

ncclResult_t NcclChannel::asynchronous_error() {
  const std::lock_guard lock(mutex_);
  ncclResult_t state = ncclSuccess;
  if (is_aborted_ || ncclCommGetAsyncError(comm_, &state) != ncclSuccess) {
    return ncclSuccess;
  }
  return state == ncclInProgress ? ncclSuccess : state;
}

bool NcclChannel::is_settled() const {
  ncclResult_t state = ncclInProgress;
  return ncclCommGetAsyncError(comm_, &state) != ncclSuccess || state != ncclInProgress;
}

// NCCL lets the operations of all communicators of a group end before it frees anything. It waits
// at once for the thread that connects a communicator or queues its operations, and that thread may
// wait for the device: what is settled comes first.
void NcclChannel::abort_all(const std::vector<NcclChannel*>& channels) noexcept {
  std::vector<std::unique_lock<std::mutex>> locks;
  std::vector<ncclComm_t> settled;
  std::vector<ncclComm_t> others;
  for (NcclChannel* channel : channels) {
    locks.emplace_back(channel->mutex_);
    if (!std::exchange(channel->is_aborted_, true)) {
      (channel->is_settled() ? settled : others).push_back(channel->comm_);
    }
  }
  (void)ncclGroupStart();
  for (const std::vector<ncclComm_t>& each : {settled, others}) {
    for (const ncclComm_t comm : each) {
      (void)ncclCommAbort(comm);
    }
  }
  (void)ncclGroupEnd();
}

ncclResult_t NcclChannel::register_memory(void* data, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (is_aborted_) {
    return ncclSuccess;
  }
  void* handle = nullptr;
  const ncclResult_t result = ncclCommRegister(comm_, data, bytes, &handle);
  if (result == ncclSuccess && handle != nullptr) {
    registered_[data] = handle;
  }
  return result;
}

void NcclChannel::deregister_memory(void* data) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = registered_.find(data);
  if (found == registered_.end()) {
    return;
  }
  if (!is_aborted_) {
    (void)ncclCommDeregister(comm_, found->second);
  }
  registered_.erase(found);
}

}  // namespace trireme
