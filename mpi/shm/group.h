// ShmGroup: some ranks of a node that work together: everybody's block (layout.h), and how they
// meet. Ranks are numbered as in the group. Owned by its transport. Used by whoever drives the
// queue; split() by the communicator's caller.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mpi/collective/exchange.h"
#include "mpi/shm/layout.h"
#include "mpi/shm/node.h"

namespace trireme {

class ShmGroup {
 public:
  // All ranks of the node. Collective over host_group, which made the node.
  static std::unique_ptr<ShmGroup> of_node(std::shared_ptr<ShmNode> node, Communicator& host_group);
  // These ranks of this group, in this order. Every one of them calls it. CommError for a dead one.
  std::unique_ptr<ShmGroup> split(const std::vector<int>& ranks);
  ~ShmGroup();
  ShmGroup(const ShmGroup&) = delete;
  ShmGroup& operator=(const ShmGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  // As ranks of the world.
  GroupMembers members() const { return node_->members().subset(members_); }
  std::string describe(int r) const { return node_->members().describe(member(r)); }
  ShmNode& node() const { return *node_; }
  const SharedSegment& segment(int r) const { return node_->segment(member(r)); }

  GroupHeader& header(int r) const { return *reinterpret_cast<GroupHeader*>(block(r)); }
  std::int64_t* counts(int r, std::uint64_t turn) const;  // i64 [size()]
  Ring& ring(int owner, int sender) const;
  std::byte* slot(int r, std::uint64_t turn) const;
  std::byte* inlet(int r, std::uint64_t turn) const;
  std::byte* outlet(int r, std::uint64_t turn) const;

  // Memory of the arena that peers may read until all ranks have left the group.
  void* take(std::int64_t bytes);
  void wake(int r) const { node_->ring(member(r)); }
  void wake_all() const;

  // The turn of the next operation, and what this rank will say of it; label apart.
  std::uint64_t next_turn() const { return operations_ + 1; }
  Notice& next_notice() { return next_notice_; }
  // Publishes next_notice() and waits for everybody's. CommError that names both, if one runs
  // another operation.
  void post(Exchange& exchange);
  const Notice& posted(int r) const { return header(r).posts[operations_ % 2].notice; }
  std::uint64_t turn() const { return operations_; }
  // Everybody's step within an operation: what ranks wrote before is there after it.
  void meet(Exchange& exchange);

  // While it lives, this rank reads and writes its peers' own buffers.
  class Touch {
   public:
    explicit Touch(ShmGroup& group);
    ~Touch();
    Touch(const Touch&) = delete;
    Touch& operator=(const Touch&) = delete;

   private:
    ShmGroup& group_;
  };
  // Returns when no peer touches a buffer of this rank any more; a second, if one stands still.
  void revoke() noexcept;

  // Whether what the driver waits for in post() or meet() is there.
  bool stirred() const { return waiting_ != Waiting::nothing && arrived(); }
  // CommError for a dead rank. It is said at the second call, so that what the rank has done
  // before its end is seen.
  void check_peers();

 private:
  enum class Waiting { nothing, posts, steps };
  ShmGroup(std::shared_ptr<ShmNode> node, std::vector<int> members, int rank);
  int member(int r) const { return members_[static_cast<std::size_t>(r)]; }
  std::byte* block(int r) const { return blocks_[static_cast<std::size_t>(r)]; }
  Offer& offer(int owner, int reader) const;
  void find_blocks(const std::vector<std::int64_t>& offsets);
  std::int64_t own_offset() const { return segment(rank_).offset_of(block(rank_)); }
  std::int64_t accept_offer(int from, std::uint64_t number);
  void wait_for_peer(const std::function<bool()>& ready);
  void wait(Exchange& exchange, Waiting what);
  bool has(int r) const;
  bool arrived() const;

  std::shared_ptr<ShmNode> node_;
  std::vector<int> members_;  // of the node
  int rank_;
  GroupLayout layout_;
  std::vector<std::byte*> blocks_;
  std::mutex mutex_;                    // guards pieces_
  std::vector<ShmNode::Piece> pieces_;  // this rank's memory of the group
  std::uint64_t splits_ = 0;            // the caller's
  // The driver's:
  Notice next_notice_{};
  std::uint64_t operations_ = 0;
  std::uint64_t steps_ = 0;
  Waiting waiting_ = Waiting::nothing;
  mutable int first_missing_ = 0;
  std::vector<int> seen_dead_;
};

}  // namespace trireme
