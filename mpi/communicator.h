// A Communicator is a group of ranks and runs the operations among them.
//
// It is a queue: operations run in the order in which they were started. Large ones run on a
// progress thread while the caller computes, or on the caller's thread as soon as it waits; small
// ones (up to 64 KiB) run when they are waited for, or some milliseconds later. A send or recv that
// waits for its peer does not delay the operations behind it. Every rank of the group must start
// the same collective operations in the same order. An operation can start in the order of a
// stream, and a stream can wait for it as the host can. Buffers belong to the caller; they must
// stay alive and untouched until the host, or the stream whose later work uses them, has waited for
// the Pending. Every wait has a deadline; when it passes, Hang names the operation, its number, the
// peers and their hosts. After an error, all later operations of the group fail with it. Owned by
// the training loop (or a test); for one thread at a time.
//
// Sums are taken in tree order: the canonical tree over 0..n-1 splits [lo,hi) at (lo+hi)/2
// (src/parallel/reduction_tree.h continues it inside a rank), so that the bits do not depend on the
// number of ranks that share the leaves, as long as that is a power of two. The bits of a NaN are
// unspecified.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "mpi/group_members.h"
#include "mpi/operation_request.h"
#include "src/device/memory_source.h"
#include "src/device/stream.h"

namespace trireme {

// Pending is an operation that was started. wait() returns when the operation has finished, or
// throws its error. The host or a stream must wait for every operation before its buffers end;
// either may wait again.
class Pending {
 public:
  // An Operation is a StreamEvent::Point that is reached when the operation has finished.
  class Operation : public StreamEvent::Point {
   public:
    virtual void abandon() noexcept = 0;
  };
  Pending() = default;
  explicit Pending(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  // Blocks the calling thread.
  void wait() {
    if (operation_ != nullptr) {
      operation_->wait();
    }
  }
  // Makes later work on the stream start after the operation has finished. Blocks if the stream
  // runs its work at once on the calling thread.
  void wait(Stream& stream) {
    if (operation_ != nullptr) {
      stream.wait(StreamEvent(operation_));
    }
  }
  bool done() const { return operation_ == nullptr || operation_->reached(); }
  // Gives up this operation and with it the whole communicator, and returns when no buffer is
  // accessed any more. Destructors that run because of an error call it. Does nothing if the
  // operation has finished.
  void abandon() noexcept {
    if (operation_ != nullptr) {
      operation_->abandon();
    }
  }

 private:
  std::shared_ptr<Operation> operation_;
};

class Communicator {
 public:
  explicit Communicator(GroupMembers members) : members_(std::move(members)) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const GroupMembers& members() const { return members_; }
  int rank() const { return members_.rank(); }
  int size() const { return members_.size(); }
  const std::string& host(int rank) const { return members_.host(rank); }

  // In all of these, the operation starts once the work that is queued on the stream `after` has
  // finished. If it is null, the buffers are ready at the time of the call.
  //
  // Sets into[i] to the reduction of all ranks' from[i]. Types: f32, f64, i32, i64, and bf16, which
  // is summed in f32; over NCCL also f16, likewise. `from` and `into` have the same type and count,
  // and are the same memory or do not overlap.
  [[nodiscard]] Pending all_reduce(ConstView from, View into, ReduceOp op, Stream* after = nullptr);
  // Does the same in place.
  [[nodiscard]] Pending all_reduce(View data, ReduceOp op, Stream* after = nullptr) {
    return all_reduce(data, data, op, after);
  }
  // data holds size() equal blocks. Afterwards block rank() holds the reduction of all ranks'
  // blocks of that number; the other blocks are undefined.
  [[nodiscard]] Pending reduce_scatter(View data, ReduceOp op, Stream* after = nullptr);
  // data holds size() equal blocks. Block r is copied from rank r to all others.
  [[nodiscard]] Pending all_gather(View data, Stream* after = nullptr);
  // Sends block r of `send` to rank r, and receives block r of `recv` from it. The blocks are
  // packed in rank order. The counts are in elements, one per rank; what rank a sends to b has the
  // size that b expects from a. `send` and `recv` have the same type and do not overlap.
  [[nodiscard]] Pending all_to_all(ConstView send, std::span<const std::int64_t> send_counts,
                                   View recv, std::span<const std::int64_t> recv_counts,
                                   Stream* after = nullptr);
  [[nodiscard]] Pending broadcast(View data, int root, Stream* after = nullptr);
  // `tag` lies in [0, kMaxUserTag]. The group has been prepared with prepare_transfers().
  [[nodiscard]] Pending send(ConstView data, int to, int tag, Stream* after = nullptr);
  [[nodiscard]] Pending recv(View data, int from, int tag, Stream* after = nullptr);
  [[nodiscard]] Pending barrier();

  // Divides the group: the ranks that pass the same color form a new one, ordered by key, then by
  // rank. Collective. Errors and flight records show `name`, for example "dp".
  virtual std::unique_ptr<Communicator> split(int color, int key, std::string_view name) = 0;
  std::unique_ptr<Communicator> split(int color, int key) { return split(color, key, "group"); }
  // Prepares the group for send() and recv(), which some implementations need. Collective.
  virtual void prepare_transfers() {}
  // Buffers from this source are moved without a copy. It is the host's ordinary memory if that is
  // as fast.
  virtual MemorySource& memory() { return host_memory(); }
  // Applies to later operations and to groups that are split off later. Must be the same on all
  // ranks.
  virtual void set_sum_order(SumOrder order) = 0;
  // Limits how long later operations may take. Anything above 100 years counts as 100 years.
  virtual void set_deadline(std::chrono::duration<double> deadline) = 0;

 private:
  // Starts an operation that one of the functions above has checked.
  virtual Pending start(const OperationRequest& request) = 0;
  void check_peer(int peer, int tag) const;

  GroupMembers members_;
};

// These are shorthands for the operations above; each waits for its result.
double all_reduce_value(Communicator& comm, double value, ReduceOp op);
std::int64_t all_reduce_value(Communicator& comm, std::int64_t value, ReduceOp op);
// Returns all ranks' texts, which may have any length, in rank order.
std::vector<std::string> all_gather_text(Communicator& comm, const std::string& text);
// Returns rank root's text on every rank.
std::string broadcast_text(Communicator& comm, const std::string& text, int root);

}  // namespace trireme
