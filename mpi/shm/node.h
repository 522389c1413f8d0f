// ShmNode connects the ranks of one host that share memory. It holds this rank's own segment and
// arena, the peers' segments and processes, and the bells on which ranks sleep. All groups of the
// rank share it, and it ends with the last. Members are numbered as in the group that made it. Any
// thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/shm/arena.h"
#include "mpi/shm/shared_segment.h"

namespace trireme {

struct ShmOptions {
  // Reserves this much address space for each rank's buffers; 0: derived from the host's memory.
  std::int64_t reserve_bytes = 0;
  // Connects ranks that are threads of one process; null for processes.
  SegmentTable* table = nullptr;
};

class ShmNode {
 public:
  // Collective over host_group. Throws the same ConfigError on every rank if one of them can't map
  // a peer's segment or has no memory for the first group.
  ShmNode(Communicator& host_group, const ShmOptions& options);
  // If an exception is the reason, marks this rank as dead for peers in the same process.
  ~ShmNode();
  ShmNode(const ShmNode&) = delete;
  ShmNode& operator=(const ShmNode&) = delete;

  // Returns all ranks of the node. `member` in the functions below is a rank's number among them.
  const GroupMembers& members() const { return members_; }
  // Returns whether there are more ranks than processors, so that waiting ranks should yield.
  bool crowded() const { return crowded_; }
  // Returns the size of the last-level cache, which at best all members share.
  std::int64_t cache_bytes() const { return cache_bytes_; }

  const SharedSegment& segment(int member) const { return *at(member).segment; }
  Arena& arena() { return *arena_; }

  // A Piece is memory of a group. retire() takes that of a group that has ended on this rank, which
  // is reused when `left` has counted all `ranks`.
  struct Piece {
    void* data;
    std::int64_t bytes;
  };
  void retire(std::vector<Piece> pieces, const std::atomic<std::int32_t>* left, int ranks);
  // Frees the memory that retired groups no longer need.
  void reclaim();

  // Wakes the member's threads that sleep. Call it after writing what they wait for.
  void ring(int member) const;
  // Sleeps until ring() or for `limit`; returns at once if stirred().
  void sleep(std::chrono::microseconds limit, const std::function<bool()>& stirred) const;
  // Returns whether the member's process has ended or, if it is a thread of this process, whether
  // it has ended on an error.
  bool is_dead(int member) const;

 private:
  struct Peer {
    std::shared_ptr<SharedSegment> segment;
    FileDescriptor process;  // a pidfd; none for ranks of this process
  };
  struct Retired {
    std::vector<Piece> pieces;
    const std::atomic<std::int32_t>* left;
    int ranks;
  };
  void make_room();
  const Peer& at(int member) const { return peers_.at(static_cast<std::size_t>(member)); }
  std::string find_peers(const std::vector<std::string>& addresses, const SegmentTable* table);
  void find_peer(int member, const SegmentAddress& address, const SegmentTable* table);

  GroupMembers members_;
  int uncaught_at_start_;
  bool crowded_;
  std::int64_t cache_bytes_;
  std::vector<Peer> peers_;  // this rank included
  std::unique_ptr<Arena> arena_;
  std::mutex mutex_;  // guards retired_
  std::vector<Retired> retired_;
};

}  // namespace trireme
