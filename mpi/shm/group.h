// ShmGroup is a set of ranks of a host that work together: it holds everyone's block (layout.h) and
// makes the ranks meet. Ranks are numbered as in the group. Owned by its transport. Used by the
// thread that drives the queue, except that the communicator's caller calls split().
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
  // Returns the group of all ranks of the node. Collective over host_group, with which the node was
  // made.
  static std::unique_ptr<ShmGroup> of_node(std::shared_ptr<ShmNode> node, Communicator& host_group);
  // Returns the group that consists of these ranks of this group, in this order. Each of them calls
  // it. Throws CommError if one of them is dead, and Hang if one does not come within 10 minutes.
  std::unique_ptr<ShmGroup> split(const std::vector<int>& ranks);
  ~ShmGroup();
  ShmGroup(const ShmGroup&) = delete;
  ShmGroup& operator=(const ShmGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  // Returns the members with their numbers in the world.
  GroupMembers members() const { return node_->members().subset(members_); }
  std::string describe(int r) const { return node_->members().describe(member(r)); }
  ShmNode& node() const { return *node_; }
  const SharedSegment& segment(int r) const { return node_->segment(member(r)); }

  // These are the parts of rank r's, or the owner's, block (layout.h); `turn` is taken modulo 2.
  GroupHeader& header(int r) const { return *reinterpret_cast<GroupHeader*>(block(r)); }
  std::int64_t* counts(int r, std::uint64_t turn) const;  // i64 [size()]
  Ring& ring(int owner, int sender) const;
  std::byte* slot(int r, std::uint64_t turn) const;
  std::byte* inlet(int r, std::uint64_t turn) const;
  std::byte* outlet(int r, std::uint64_t turn) const;

  // Allocates memory that peers may read until all ranks have left the group.
  void* take(std::int64_t bytes);
  void wake(int r) const { node_->ring(member(r)); }
  void wake_all() const;

  // Return the turn of the next operation and the notice that this rank will post for it. post()
  // sets its label.
  std::uint64_t next_turn() const { return operations_ + 1; }
  Notice& next_notice() { return next_notice_; }
  // Publishes next_notice() and waits until all ranks have posted theirs. Throws CommError, which
  // names both operations, if a rank runs another one.
  void post(Exchange& exchange);
  const Notice& posted(int r) const { return header(r).posts[operations_ % 2].notice; }
  std::uint64_t turn() const { return operations_; }
  // Waits until all ranks have come here within an operation. What they wrote before is then
  // visible.
  void meet(Exchange& exchange);

  // While a Touch exists, this rank reads and writes its peers' own buffers. The constructor throws
  // CommError if a rank has revoked its buffers.
  class Touch {
   public:
    explicit Touch(ShmGroup& group);
    ~Touch();
    Touch(const Touch&) = delete;
    Touch& operator=(const Touch&) = delete;

   private:
    ShmGroup& group_;
  };
  // Forbids peers to touch this rank's buffers and returns when none does any more. Waits at most a
  // second for peers that make no progress.
  void revoke() noexcept;

  // Returns whether the event has come for which the driver waits in post() or meet().
  bool stirred() const { return waiting_ != Waiting::nothing && arrived(); }
  // Throws CommError if a rank is dead. Reports a death only at the second call that sees it, so
  // that what the rank did before its end is processed first.
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
  std::vector<int> members_;  // by rank; numbers in the node
  int rank_;
  GroupLayout layout_;
  std::vector<std::byte*> blocks_;
  std::mutex mutex_;                    // guards pieces_
  std::vector<ShmNode::Piece> pieces_;  // this rank's memory for the group
  std::uint64_t splits_ = 0;            // used by the caller
  // The members below are used by the driver.
  Notice next_notice_{};
  std::uint64_t operations_ = 0;
  std::uint64_t steps_ = 0;
  Waiting waiting_ = Waiting::nothing;
  mutable int first_missing_ = 0;
  std::vector<int> seen_dead_;
};

}  // namespace trireme
