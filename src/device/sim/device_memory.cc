#include "src/device/sim/device_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include <sys/mman.h>
#include <unistd.h>

#include "src/device/sim/kernel_thread.h"

// Null in programs without the address sanitizer.
extern "C" {
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* address, std::size_t bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* address, std::size_t bytes);
}

namespace sim {
namespace {

constexpr std::size_t kAllocationAlignment = 512;
constexpr std::size_t kRedZone = 512;  // at least
constexpr std::size_t kMemoryPage = 4096;
// A change of access costs time for each page that kernels have touched. After so many, all pages
// are unmapped, so that those that are no longer in use cost nothing.
constexpr int kClosings = 32;

void poison(const void* address, std::size_t bytes) {
  if (__asan_poison_memory_region != nullptr) {
    __asan_poison_memory_region(address, bytes);
  }
}
void unpoison(const void* address, std::size_t bytes) {
  if (__asan_unpoison_memory_region != nullptr) {
    __asan_unpoison_memory_region(address, bytes);
  }
}

std::size_t with_red_zone(std::size_t bytes) {
  return (bytes + kRedZone + kAllocationAlignment - 1) / kAllocationAlignment *
         kAllocationAlignment;
}

// The host cannot hold the device's memory.
[[noreturn]] void refuse(const char* what, std::size_t bytes) {
  std::fprintf(stderr,
               "simulated device: cannot %s a device's memory (%zu bytes): %s; raise the limit on "
               "memory (ulimit -v), or set TRIREME_SIM_MEMORY to fewer bytes\n",
               what, bytes, std::strerror(errno));
  std::_Exit(76);
}

std::byte* map_file(int file, std::size_t bytes, int protection) {
  void* memory = ::mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (memory == MAP_FAILED) {
    refuse("map", bytes);
  }
  return static_cast<std::byte*>(memory);
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : capacity_(bytes) {
  const int file = ::memfd_create("simulated device", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    refuse("create", bytes);
  }
  own_ = map_file(file, bytes, PROT_NONE);
  alias_ = map_file(file, bytes, PROT_READ | PROT_WRITE);
  ::close(file);
  free_[0] = bytes;
  poison(own_, bytes);
}

bool DeviceMemory::holds(const void* address, std::size_t bytes) const {
  const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(address) - own_);
  auto found = taken_.upper_bound(at);
  if (found == taken_.begin()) {
    return false;
  }
  --found;
  const std::size_t into = at - found->first;
  return into <= found->second && bytes <= found->second - into;
}

// Fills memory that was never used with NaN, up to `end`.
void DeviceMemory::fill_fresh(std::size_t end) {
  if (end > filled_) {
    std::memset(alias_ + filled_, 0xFF, end - filled_);
    filled_ = end;
  }
}

void* DeviceMemory::take(std::size_t bytes) {
  const std::size_t all = with_red_zone(bytes);
  const auto found = std::find_if(free_.begin(), free_.end(),
                                  [=](const auto& piece) { return piece.second >= all; });
  if (bytes > capacity_ || found == free_.end()) {
    return nullptr;
  }
  const auto [at, size] = *found;
  free_.erase(found);
  if (size > all) {
    free_[at + all] = size - all;
  }
  taken_[at] = bytes;
  used_ += all;
  fill_fresh(at + all);
  unpoison(own_ + at, bytes);
  return own_ + at;
}

// Checks what lies behind an allocation of `bytes` bytes.
void DeviceMemory::check_red_zone(std::size_t at, std::size_t bytes) const {
  const auto untouched = [](std::byte one) { return one == std::byte{0xFF}; };
  if (!std::all_of(alias_ + at + bytes, alias_ + at + with_red_zone(bytes), untouched)) {
    char text[120];
    std::snprintf(text, sizeof text, "a kernel wrote behind the end of an allocation of %zu bytes",
                  bytes);
    die(text);
  }
}

bool DeviceMemory::give_back(void* address) {
  const auto at = static_cast<std::size_t>(static_cast<std::byte*>(address) - own_);
  const auto found = taken_.find(at);
  if (found == taken_.end()) {
    return false;
  }
  const std::size_t bytes = found->second;
  const std::size_t all = with_red_zone(bytes);
  check_red_zone(at, bytes);
  poison(address, bytes);
  std::memset(alias_ + at, 0xFF, bytes);
  taken_.erase(found);
  used_ -= all;
  const auto here = free_.emplace(at, all).first;
  merge_with_next(here);
  if (here != free_.begin()) {
    merge_with_next(std::prev(here));
  }
  return true;
}

void DeviceMemory::merge_with_next(std::map<std::size_t, std::size_t>::iterator at) {
  const auto next = std::next(at);
  if (next != free_.end() && at->first + at->second == next->first) {
    at->second += next->second;
    free_.erase(next);
  }
}

// Returns the end of the last allocation's last page, red zone included.
std::size_t DeviceMemory::end_of_allocations() const {
  const auto& [at, bytes] = *taken_.rbegin();
  return std::min((at + with_red_zone(bytes) + kMemoryPage - 1) / kMemoryPage * kMemoryPage,
                  capacity_);
}

void DeviceMemory::allow_access(bool allowed) {
  if (allowed) {
    const std::size_t end = taken_.empty() ? 0 : end_of_allocations();
    if (end > open_) {
      ::mprotect(own_ + open_, end - open_, PROT_READ | PROT_WRITE);
      open_ = end;
    }
  } else if (open_ > 0) {
    if (++closings_ % kClosings == 0) {
      ::madvise(own_, open_, MADV_DONTNEED);  // the file keeps what they hold
    }
    ::mprotect(own_, open_, PROT_NONE);
    open_ = 0;
    for (const auto& [at, bytes] : taken_) {
      check_red_zone(at, bytes);
    }
  }
}

}  // namespace sim
