// Transport moves bytes between the ranks of a group. Sends and receives match by (sender,
// receiver, tag) in the order of posting, and both ends give the same number of bytes. A transport
// that can run whole collective operations faster than by transfers has Algorithms of its own. Used
// by one thread at a time, the one that drives the communicator that owns it, except that the
// communicator's caller calls split_off(). No function blocks except split_off().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/group_members.h"
#include "src/base/error.h"

namespace trireme {

// Identifies a transfer from its start until finished() has returned true.
using TransferId = std::int64_t;

// Largest transfer in bytes. It fits MPI's int counts with room to spare.
inline constexpr std::int64_t kMaxTransferBytes = std::int64_t{1} << 30;

// The tag of all collective operations, whose transfers match by order. A user's tag t is sent as t
// + 1.
inline constexpr int kCollectiveTag = 0;

class Algorithms;
class MemorySource;

class Transport {
 public:
  explicit Transport(GroupMembers members) : members_(std::move(members)) {}
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  const GroupMembers& members() const { return members_; }
  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }

  // The buffers must stay valid and unused until finished() returns true or cancel_all() was
  // called.
  virtual TransferId start_send(const void* data, std::int64_t bytes, int to, int tag) = 0;
  virtual TransferId start_recv(void* data, std::int64_t bytes, int from, int tag) = 0;
  // Receives `bytes`, or a message of any other length up to `room`; finished() returns true for
  // that too. Used for the first message of an operation, which says what the sender runs
  // (greeting.h). A transport that can't tolerate another length throws as it does for any message,
  // with a less specific error.
  virtual TransferId start_recv_of_any_length(void* data, std::int64_t bytes, std::int64_t /*room*/,
                                              int from, int tag) {
    return start_recv(data, bytes, from, tag);
  }
  // Polls once. After it has returned true, the id is invalid. Throws CommError if a peer is lost
  // or the message has another length.
  virtual bool finished(TransferId id) = 0;
  // Cancels all unfinished transfers; afterwards no buffer is accessed. The group can't be used any
  // more.
  virtual void cancel_all() noexcept = 0;
  // Sleeps until something may have happened, but no longer than `limit`.
  virtual void pause(std::chrono::microseconds limit) = 0;
  // Returns whether pause() returns as soon as something happens, so that its limit may be long.
  virtual bool wakes() const { return false; }
  // Throws CommError if a peer is known to be dead. Called every few milliseconds during a wait.
  virtual void check_peers() {}

  // Returns the algorithms for this group's collective operations. The default uses transfers.
  // Called once, when the group is made; the algorithms end before the transport.
  virtual std::unique_ptr<Algorithms> make_algorithms();
  // Returns the memory that this transport moves without a copy, which belongs to the world; null
  // if there is none.
  virtual MemorySource* memory() { return nullptr; }

  // Returns the group that consists of these ranks of this group, in this order; this rank is one
  // of them. Every rank of this group calls it at about the same time, each with the members of its
  // own new group.
  virtual std::unique_ptr<Transport> split_off(const std::vector<int>& members) = 0;

 private:
  GroupMembers members_;
};

}  // namespace trireme
