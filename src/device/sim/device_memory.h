// The memory of one simulated device. It lies twice in the address space: at the addresses that the
// program gets, which nobody may touch but kernels while they run, and under an alias that only the
// simulation knows. Behind each allocation lies a red zone. Memory that was not written yet, or was
// freed, holds NaN. Not thread-safe: the Machine's mutex guards it.
#pragma once

#include <cstddef>
#include <map>

namespace sim {

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::size_t bytes() const { return capacity_; }
  std::size_t free_bytes() const { return capacity_ - used_; }
  std::size_t allocations() const { return taken_.size(); }

  bool contains(const void* address) const { return address >= own_ && address < own_ + capacity_; }
  // Returns whether `bytes` bytes from the address on lie within one allocation.
  bool holds(const void* address, std::size_t bytes) const;
  // Returns where the simulation itself may access what lies at the address.
  std::byte* alias(const void* address) const {
    return alias_ + (static_cast<const std::byte*>(address) - own_);
  }

  // Returns nullptr if there is no room. Aligned to 512 bytes.
  void* take(std::size_t bytes);
  // Returns false if nothing was taken at the address. Ends the program if a kernel has written
  // behind the allocation.
  bool give_back(void* address);

  // Lets every thread of the process access the allocations at their own addresses, or none. Memory
  // behind the last allocation stays closed, since a change of access costs time for each page.
  // Ends the program if a kernel has written behind an allocation in the meantime.
  void allow_access(bool allowed);

 private:
  void check_red_zone(std::size_t at, std::size_t bytes) const;
  void merge_with_next(std::map<std::size_t, std::size_t>::iterator at);
  void fill_fresh(std::size_t end);
  std::size_t end_of_allocations() const;

  std::size_t capacity_;
  std::byte* own_ = nullptr;
  std::byte* alias_ = nullptr;
  std::size_t open_ = 0;  // bytes from the start that every thread may access
  int closings_ = 0;
  std::size_t used_ = 0;
  std::size_t filled_ = 0;                    // bytes that were NaN or allocated once
  std::map<std::size_t, std::size_t> free_;   // bytes by offset
  std::map<std::size_t, std::size_t> taken_;  // requested bytes by offset
};

}  // namespace sim
