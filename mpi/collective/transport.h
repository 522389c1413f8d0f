// Transport: moves bytes between the ranks of a group. A transfer is matched by (sender, receiver,
// tag) in the order of posting, both ends giving the same bytes. A transport that knows a faster
// way for whole collective operations than transfers brings its own Algorithms. Used by one thread
// at a time, whichever drives the communicator that owns it; split_off() by the communicator's
// caller. No function blocks except split_off().
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/group_members.h"
#include "src/base/error.h"

namespace trireme {

// Names a transfer from its start until finished() said so.
using TransferId = std::int64_t;

// Longest transfer, in bytes: what fits MPI's int counts with room to spare.
inline constexpr std::int64_t kMaxTransferBytes = std::int64_t{1} << 30;

// Tags: one for all collectives, whose transfers match by order; a user's tag t travels as t + 1.
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

  // The buffers stay untouched by others until finished() or cancel_all().
  virtual TransferId start_send(const void* data, std::int64_t bytes, int to, int tag) = 0;
  virtual TransferId start_recv(void* data, std::int64_t bytes, int from, int tag) = 0;
  // A receive of `bytes`, whose message may turn out to have another length, up to `room`: then
  // finished() is `true` as well. For the first message of an operation, which tells what the
  // sender runs (greeting.h). A transport that can't tolerate another length fails as for any other
  // message, and the error knows less.
  virtual TransferId start_recv_of_any_length(void* data, std::int64_t bytes, std::int64_t /*room*/,
                                              int from, int tag) {
    return start_recv(data, bytes, from, tag);
  }
  // Asks once. After `true` the id is void. CommError for a lost peer or another message's length.
  virtual bool finished(TransferId id) = 0;
  // Takes back every unfinished transfer; no buffer is touched afterwards. The end of the group.
  virtual void cancel_all() noexcept = 0;
  // Sleeps until something may have happened, no longer than `limit`.
  virtual void pause(std::chrono::microseconds limit) = 0;
  // Whether pause() returns as soon as something happens: it may be long then.
  virtual bool wakes() const { return false; }
  // CommError if a peer is known to be dead. Asked while something waits, every millisecond or so.
  virtual void check_peers() {}

  // How this group runs collective operations: over transfers, unless the transport knows a faster
  // way. Called once, when the group is made; the algorithms end before the transport.
  virtual std::unique_ptr<Algorithms> make_algorithms();
  // Memory that this transport moves without a copy, the world's own; null where there is none.
  virtual MemorySource* memory() { return nullptr; }

  // The group of these ranks of this group, in this order; this rank is one of them. Every rank
  // of this group calls it at about the same time, each with its own group's members.
  virtual std::unique_ptr<Transport> split_off(const std::vector<int>& members) = 0;

 private:
  GroupMembers members_;
};

}  // namespace trireme
