// ShmNode: the ranks of one host that share memory: this rank's own segment and arena, the peers'
// segments, their processes, and the bells on which ranks sleep. Shared by all groups of the rank,
// ends with the last. Members are numbered as in the group that made it. Any thread.
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
  // Address space for each rank's buffers; 0: what the host's memory allows.
  std::int64_t reserve_bytes = 0;
  // Where ranks that are threads of one process find each other; null for processes.
  SegmentTable* table = nullptr;
};

class ShmNode {
 public:
  // Collective over host_group. The same ConfigError on every rank if one of them can't map a peer,
  // or has no memory for the first group.
  ShmNode(Communicator& host_group, const ShmOptions& options);
  // Peers of the same process learn from it that an error ended this rank.
  ~ShmNode();
  ShmNode(const ShmNode&) = delete;
  ShmNode& operator=(const ShmNode&) = delete;

  // All ranks of the node; `member` below is a rank's number among them.
  const GroupMembers& members() const { return members_; }
  // More ranks than processors: whoever waits lets others run.
  bool crowded() const { return crowded_; }
  // Of the last-level cache, which its members share at best.
  std::int64_t cache_bytes() const { return cache_bytes_; }

  const SharedSegment& segment(int member) const { return *at(member).segment; }
  Arena& arena() { return *arena_; }

  // Memory of a group that has ended here; reused when `left` has counted all its ranks.
  struct Piece {
    void* data;
    std::int64_t bytes;
  };
  void retire(std::vector<Piece> pieces, const std::atomic<std::int32_t>* left, int ranks);
  // Gives back what retired groups no longer need.
  void reclaim();

  // Wakes the member's threads if any sleeps. After whatever they wait for has been written.
  void ring(int member) const;
  // Sleeps until rung, no longer than limit, not at all if stirred().
  void sleep(std::chrono::microseconds limit, const std::function<bool()>& stirred) const;
  // Whether the member's process has ended, or its thread on an error.
  bool is_dead(int member) const;

 private:
  struct Peer {
    std::shared_ptr<SharedSegment> segment;
    FileDescriptor process;  // a pidfd; none for this process
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
