#include "mpi/nccl/nccl_memory.h"

#include <algorithm>

#include <fmt/core.h>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_counts.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

std::string trouble_text(const char* call, ncclResult_t result) {
  return fmt::format(
      "NCCL cannot register memory here ({}: {}): tensors between ranks go through its own buffers",
      call, ncclGetErrorString(result));
}

}  // namespace

// If ncclMemAlloc() fails, CUDA may still succeed; if it fails, too, its error says how much memory
// is missing.
NcclMemory::Block NcclMemory::take_block(void*& data, std::int64_t bytes) {
  if (trouble_.empty()) {
    cuda::use_device(device_);
    cuda::count_allocation();
    const ncclResult_t result = ncclMemAlloc(&data, static_cast<std::size_t>(bytes));
    if (result == ncclSuccess) {
      return {bytes, true};
    }
    (void)cudaGetLastError();
    data = cuda::device_memory(device_).take(bytes);
    trouble_ = trouble_text("ncclMemAlloc", result);
    return {bytes, false};
  }
  data = cuda::device_memory(device_).take(bytes);
  return {bytes, false};
}

void NcclMemory::free_block(void* data, const Block& block) noexcept {
  (void)cudaSetDevice(device_);
  if (block.is_ncclmem) {
    (void)ncclMemFree(data);
  } else {
    cuda::device_memory(device_).give_back(data, block.bytes);
  }
}

void NcclMemory::register_with(NcclChannel& channel, void* data, const Block& block) {
  if (!block.is_ncclmem || !trouble_.empty()) {
    return;
  }
  const ncclResult_t result = channel.register_memory(data, static_cast<std::size_t>(block.bytes));
  if (result != ncclSuccess) {
    trouble_ = trouble_text("ncclCommRegister", result);
  }
}

void* NcclMemory::take(std::int64_t bytes) {
  if (bytes < kLeastRegistered) {
    return cuda::device_memory(device_).take(bytes);
  }
  const std::lock_guard lock(mutex_);
  void* data = nullptr;
  const Block block = take_block(data, bytes);
  blocks_[data] = block;
  for (NcclChannel* const channel : channels_) {
    register_with(*channel, data, block);
  }
  return data;
}

void NcclMemory::give_back(void* data, std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(data);
  if (found == blocks_.end()) {
    cuda::device_memory(device_).give_back(data, bytes);
    return;
  }
  for (NcclChannel* const channel : channels_) {
    channel->deregister_memory(data);
  }
  free_block(data, found->second);
  blocks_.erase(found);
}

void NcclMemory::add(NcclChannel& channel) {
  const std::lock_guard lock(mutex_);
  channels_.push_back(&channel);
  if (!has_tried_) {
    has_tried_ = true;
    void* data = nullptr;
    const Block block = take_block(data, kLeastRegistered);
    register_with(channel, data, block);
    channel.deregister_memory(data);
    free_block(data, block);
  }
  for (const auto& [data, block] : blocks_) {
    register_with(channel, data, block);
  }
}

void NcclMemory::remove(NcclChannel& channel) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(channels_, &channel);
  for (const auto& [data, block] : blocks_) {
    channel.deregister_memory(data);
  }
}

std::string NcclMemory::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace trireme
