#include "mpi/shm/arena.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::int64_t kGrain = 64;
constexpr std::int64_t kHugeAlignment = std::int64_t{2} << 20;
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

std::int64_t granted(std::int64_t bytes) { return rounded_up(std::max(bytes, kGrain), kGrain); }

// Returns the number in a file that holds one, or kUnlimited if there is none ("max", no such
// file).
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : kUnlimited;
}

std::int64_t available_on_host() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    std::int64_t kib = 0;
    if (name == "MemAvailable:" && file >> kib) {
      return kib * 1024;
    }
  }
  return kUnlimited;
}

// Reads this process's control group, version 2.
std::int64_t available_in_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) {
      const std::string folder = "/sys/fs/cgroup" + line.substr(3);
      const std::int64_t most = number_in(folder + "/memory.max");
      const std::int64_t used = number_in(folder + "/memory.current");
      return most == kUnlimited || used == kUnlimited ? kUnlimited : std::max(most - used, {});
    }
  }
  return kUnlimited;
}

[[noreturn]] void refuse(std::int64_t bytes, const std::string& why) {
  throw ResourceError(
      fmt::format("out of memory for the buffers that the ranks of this host share: {} more are "
                  "needed, but {}; use a smaller micro-batch or model, or fewer ranks per host",
                  format_bytes(bytes), why));
}

}  // namespace

std::int64_t available_memory_bytes() {
  return std::min(available_on_host(), available_in_group());
}

Arena::Arena(std::shared_ptr<SharedSegment> segment) : segment_(std::move(segment)) {}

void* Arena::take(std::int64_t bytes) {
  check(bytes >= 0, "a size in bytes is not negative");
  const std::lock_guard lock(mutex_);
  if (bytes > segment_->address().reserve_bytes) {
    refuse(bytes, fmt::format("a shared-memory segment holds at most {}",
                              format_bytes(segment_->address().reserve_bytes)));
  }
  const std::int64_t alignment = bytes >= kHugeAlignment ? kHugeAlignment : kGrain;
  std::int64_t offset = take_offset(granted(bytes), alignment);
  if (offset < 0) {
    grow_for(granted(bytes), alignment);
    offset = take_offset(granted(bytes), alignment);
  }
  return segment_->at(offset);
}

void Arena::give_back(void* data, std::int64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  insert(segment_->offset_of(data), granted(bytes));
}

std::int64_t Arena::grown_bytes() const {
  const std::lock_guard lock(mutex_);
  return end_;
}

// Returns -1 if nothing fits.
std::int64_t Arena::take_offset(std::int64_t bytes, std::int64_t alignment) {
  for (auto range = free_.begin(); range != free_.end(); ++range) {
    const std::int64_t offset = rounded_up(range->first, alignment);
    if (offset + bytes <= range->first + range->second) {
      return cut(range, offset, bytes);
    }
  }
  return -1;
}

std::int64_t Arena::cut(Ranges::iterator range, std::int64_t offset, std::int64_t bytes) {
  const auto [first, length] = *range;
  free_.erase(range);
  if (offset > first) {
    free_[first] = offset - first;
  }
  if (offset + bytes < first + length) {
    free_[offset + bytes] = first + length - offset - bytes;
  }
  return offset;
}

// Grows by whole huge pages, and by less if memory at the end of the segment is free.
void Arena::grow_for(std::int64_t bytes, std::int64_t alignment) {
  std::int64_t first = end_;
  if (!free_.empty() && free_.rbegin()->first + free_.rbegin()->second == end_) {
    first = free_.rbegin()->first;
  }
  const std::int64_t end = rounded_up(rounded_up(first, alignment) + bytes, kHugeAlignment);
  const std::int64_t more = end - end_;
  if (const std::int64_t available = available_memory_bytes(); more > available) {
    refuse(more, fmt::format("the host or this job's control group has {} left",
                             format_bytes(available)));
  }
  if (!segment_->grow(end)) {
    refuse(more, fmt::format("a shared-memory segment cannot grow beyond {} or the file size limit "
                             "of this process (raise ulimit -f, or set comm.backend=mpi)",
                             format_bytes(segment_->address().reserve_bytes)));
  }
  if (!segment_->populate(end_, more)) {
    refuse(more, "the system has no pages for them");
  }
  insert(end_, more);
  end_ = end;
}

// Inserts a free range and merges it with its neighbors.
void Arena::insert(std::int64_t offset, std::int64_t bytes) noexcept {
  const auto next = free_.lower_bound(offset);
  if (next != free_.end() && offset + bytes == next->first) {
    bytes += next->second;
    free_.erase(next);
  }
  const auto after = free_.lower_bound(offset);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  free_[offset] = bytes;
}

}  // namespace trireme
