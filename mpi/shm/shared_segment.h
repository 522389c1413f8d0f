// SharedSegment is shared memory that one rank owns and its peers on the host map. It is a memfd,
// which has no name in the file system, so that nothing is left behind however the ranks end. The
// whole address range is reserved; memory is added as the owner grows the segment, and is freed
// with the last mapping. Peers open it through /proc, which needs the same user and the same PID
// namespace.
//
//   offset 0        SegmentHeader
//   4096 ...        the owner's Arena
//
// Thread rule: immutable after construction, except that the arena calls grow() and populate()
// under its lock.
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
  std::uint64_t nonce;                          // distinguishes this segment from all others
  alignas(64) std::atomic<std::uint32_t> bell;  // a futex that peers increment
  std::atomic<std::uint32_t> sleepers;          // number of the owner's threads that sleep on it
  alignas(64) std::atomic<std::uint32_t> ended_early;  // whether the owner ended on an error
};

using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

// Says where a peer finds a segment. It is sent as text.
struct SegmentAddress {
  int pid = 0;
  int fd = -1;
  std::int64_t reserve_bytes = 0;
  std::uint64_t nonce = 0;

  std::string text() const;
  // Throws CommError unless the text was made by text().
  static SegmentAddress parse(const std::string& text);
};

class SharedSegment {
 public:
  static constexpr std::int64_t kHeaderBytes = 4096;

  // Makes this rank's own segment, which holds only the header. Throws ConfigError if the system
  // refuses it.
  static std::shared_ptr<SharedSegment> make(std::int64_t reserve_bytes);
  // Maps a peer's segment. Throws ConfigError, which says why, if that is not possible.
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

  // For the owner: grow() makes the file `bytes` long, and populate() allocates the memory of
  // [offset, offset + bytes) on the calling thread's NUMA node. Both return whether the system
  // could do it.
  bool grow(std::int64_t bytes) const;
  bool populate(std::int64_t offset, std::int64_t bytes) const;

 private:
  SharedSegment(FileDescriptor fd, const SegmentAddress& address);

  FileDescriptor fd_;
  SegmentAddress address_;
  std::byte* reserved_ = nullptr;  // the whole range; base_ lies in it at a multiple of 2 MiB
  std::int64_t reserved_bytes_ = 0;
  std::byte* base_ = nullptr;
};

// SegmentTable lists the segments of ranks that are threads of one process. Such peers share one
// mapping, so that race detectors see their accesses. Any thread.
class SegmentTable {
 public:
  void add(const std::shared_ptr<SharedSegment>& segment);
  // Returns null if the segment is not in the table.
  std::shared_ptr<SharedSegment> find(const SegmentAddress& address) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::weak_ptr<SharedSegment>> segments_;  // by nonce
};

}  // namespace trireme
