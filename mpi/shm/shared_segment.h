// SharedSegment: shared memory that one rank owns and its peers on the host map: a memfd, which has
// no name in the file system, so that nothing is left behind however the ranks end. The address
// range is reserved whole; the memory comes as the owner grows it, and stays until all mappings are
// gone. Peers open it through /proc, which takes the same user and the same pid namespace.
//
//   offset 0        SegmentHeader
//   4096 ...        the owner's Arena
//
// Thread rule: plain values after construction; grow() and populate() by the arena under its lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "src/base/file.h"

namespace trireme {

struct SegmentHeader {
  std::uint64_t magic;
  std::uint64_t nonce;                                 // tells this segment from any other
  alignas(64) std::atomic<std::uint32_t> bell;         // rung by peers, a futex
  std::atomic<std::uint32_t> sleepers;                 // threads of the owner that sleep on it
  alignas(64) std::atomic<std::uint32_t> ended_early;  // the owner left on an error
};

using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

// Where a peer finds a segment.
struct SegmentAddress {
  int pid = 0;
  int fd = -1;
  std::int64_t reserve_bytes = 0;
  std::uint64_t nonce = 0;

  std::string text() const;
  // CommError unless it is what text() gives.
  static SegmentAddress parse(const std::string& text);
};

class SharedSegment {
 public:
  static constexpr std::int64_t kHeaderBytes = 4096;

  // This rank's own, with the header alone. ConfigError where the system grants none.
  static std::shared_ptr<SharedSegment> make(std::int64_t reserve_bytes);
  // A peer's. ConfigError that says why it can't be mapped.
  static std::shared_ptr<SharedSegment> open(const SegmentAddress& address);
  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  const SegmentAddress& address() const { return address_; }
  std::byte* at(std::int64_t offset) const { return base_ + offset; }
  std::int64_t offset_of(const void* data) const {
    return static_cast<const std::byte*>(data) - base_;
  }
  bool contains(const void* data, std::int64_t bytes) const;

  // The owner's: makes the file `bytes` long, and gives the range [offset, offset + bytes) memory
  // on the calling thread's NUMA node. Both say whether the system could.
  bool grow(std::int64_t bytes) const;
  bool populate(std::int64_t offset, std::int64_t bytes) const;

 private:
  SharedSegment(FileDescriptor fd, const SegmentAddress& address);

  FileDescriptor fd_;
  SegmentAddress address_;
  std::byte* reserved_ = nullptr;  // the whole range, base_ lies in it at a multiple of 2 MiB
  std::int64_t reserved_bytes_ = 0;
  std::byte* base_ = nullptr;
};

// The segments of ranks that are threads of one process: there a peer's segment is the very same
// mapping, so that a race detector sees who touches it. Any thread.
class SegmentTable {
 public:
  void add(const std::shared_ptr<SharedSegment>& segment);
  // Null if it is not here.
  std::shared_ptr<SharedSegment> find(const SegmentAddress& address) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<SharedSegment>> segments_;  // by nonce
};

}  // namespace trireme
