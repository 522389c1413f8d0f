// NcclMemory is the device memory of the pools whose tensors ranks exchange. Large blocks are
// registered with every channel of the world, so that NCCL moves them without a copy through its
// own buffers where its transports can. Owned by the communicators of one world together, which its
// pools must not outlive; any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "mpi/nccl/nccl_channel.h"
#include "src/device/memory_source.h"

namespace trireme {

class NcclMemory : public MemorySource {
 public:
  // Smaller blocks are ordinary device memory: ncclMemAlloc() rounds sizes up to this.
  static constexpr std::int64_t kLeastRegistered = std::int64_t{2} << 20;

  explicit NcclMemory(int device) : device_(device) {}

  void* take(std::int64_t bytes) override;
  void give_back(void* data, std::int64_t bytes) noexcept override;

  // Registers all blocks with the channel, which must be removed before it ends. The first call
  // tests with a block of its own whether NCCL can register memory here.
  void add(NcclChannel& channel);
  void remove(NcclChannel& channel) noexcept;
  // Returns why blocks are not registered, or "" if they are.
  std::string trouble() const;

 private:
  struct Block {
    std::int64_t bytes = 0;
    bool is_ncclmem = false;  // from ncclMemAlloc()
  };
  Block take_block(void*& data, std::int64_t bytes);
  void free_block(void* data, const Block& block) noexcept;
  void register_with(NcclChannel& channel, void* data, const Block& block);

  int device_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<NcclChannel*> channels_;
  std::map<void*, Block> blocks_;  // blocks of kLeastRegistered bytes and more
  std::string trouble_;
  bool has_tried_ = false;
};

}  // namespace trireme
