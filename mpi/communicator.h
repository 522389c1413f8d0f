// Communicator: a group of ranks and the operations among them.
//
// A communicator is a queue: its operations run in the order in which they were started, on a
// thread of its own, while the caller computes, or on the caller's as soon as it waits; small ones
// (up to 64 KiB) only then, or some milliseconds later. A send or recv that waits for its peer
// holds up nothing behind it. Every rank of the group has to start the same collective operations
// in the same order. An operation starts in the order of a stream, and a stream can wait for it as
// well as the host. Buffers stay the caller's and must stay alive, untouched, until the Pending is
// waited for, by the host or by the stream whose later work touches them. Every wait has a
// deadline; when it passes, Hang names the operation, its number, the peers and their hosts. After
// an error all later operations of the group fail with it. Owned by the training loop (or a test);
// not for several threads at once.
//
// Sums are taken in tree order: the canonical tree over 0..n-1 splits [lo,hi) at (lo+hi)/2
// (src/parallel/reduction_tree.h continues it inside a rank), so that the bits do not depend on the
// number of ranks that the leaves are spread over, where that is a power of two. The bits of a NaN
// are not promised.
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

// An operation under way. wait() returns when it has finished, or throws what went wrong; it, or
// the wait of a stream, must be called before the end, and may be called again.
class Pending {
 public:
  // As an event, reached when the operation has finished.
  class Operation : public StreamEvent::Point {
   public:
    virtual void abandon() noexcept = 0;
  };
  Pending() = default;
  explicit Pending(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  // On the host.
  void wait() {
    if (operation_ != nullptr) {
      operation_->wait();
    }
  }
  // Later work on the stream starts when the operation has finished. Where the stream's work runs
  // at once on the host, so does this wait.
  void wait(Stream& stream) {
    if (operation_ != nullptr) {
      stream.wait(StreamEvent(operation_));
    }
  }
  bool done() const { return operation_ == nullptr || operation_->reached(); }
  // For destructors on the way out of an error: gives up this operation and with it the whole
  // communicator, and returns when no buffer is touched any more. Nothing for a finished one.
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

  // `after`, in all of these: the operation starts once the work that is queued on this stream has
  // finished. Null: the buffers are ready now.
  //
  // into[i] = the reduction of every rank's from[i]. f32, f64, i32, i64; bf16 is summed in f32.
  // `from` and `into` have the same type and count; they are the same memory or do not overlap.
  [[nodiscard]] Pending all_reduce(ConstView from, View into, ReduceOp op, Stream* after = nullptr);
  // In place.
  [[nodiscard]] Pending all_reduce(View data, ReduceOp op, Stream* after = nullptr) {
    return all_reduce(data, data, op, after);
  }
  // data holds size() equal blocks; this rank's own block (number rank()) is reduced, the others
  // end undefined.
  [[nodiscard]] Pending reduce_scatter(View data, ReduceOp op, Stream* after = nullptr);
  // data holds size() equal blocks; this rank's own is given, all are filled.
  [[nodiscard]] Pending all_gather(View data, Stream* after = nullptr);
  // Block r of `send` goes to rank r; block r of `recv` comes from it. The blocks lie packed in
  // rank order, with counts in elements, one per rank: what rank a gives for b is what b expects
  // from a. `send` and `recv` are of one type and do not overlap.
  [[nodiscard]] Pending all_to_all(ConstView send, std::span<const std::int64_t> send_counts,
                                   View recv, std::span<const std::int64_t> recv_counts,
                                   Stream* after = nullptr);
  [[nodiscard]] Pending broadcast(View data, int root, Stream* after = nullptr);
  // tag: 0..kMaxUserTag.
  [[nodiscard]] Pending send(ConstView data, int to, int tag, Stream* after = nullptr);
  [[nodiscard]] Pending recv(View data, int from, int tag, Stream* after = nullptr);
  [[nodiscard]] Pending barrier();

  // Ranks of one colour form a group, ordered by key, then by rank. Errors and records call the
  // group by its name: "dp".
  virtual std::unique_ptr<Communicator> split(int color, int key, std::string_view name) = 0;
  std::unique_ptr<Communicator> split(int color, int key) { return split(color, key, "group"); }
  // Buffers from here are moved without a copy; the host's ordinary memory where all are alike.
  virtual MemorySource& memory() { return host_memory(); }
  // For later operations; the same on all ranks. Groups split off later start with it.
  virtual void set_sum_order(SumOrder order) = 0;
  // How long later operations may take; above a hundred years as good as for ever.
  virtual void set_deadline(std::chrono::duration<double> deadline) = 0;

 private:
  // Starts what one of the functions above has checked.
  virtual Pending start(const OperationRequest& request) = 0;
  void check_peer(int peer, int tag) const;

  GroupMembers members_;
};

// Small conveniences over the operations above; each waits.
double all_reduce_value(Communicator& comm, double value, ReduceOp op);
std::int64_t all_reduce_value(Communicator& comm, std::int64_t value, ReduceOp op);
// Every rank's text (of any length), in rank order, on every rank.
std::vector<std::string> all_gather_text(Communicator& comm, const std::string& text);
// Rank root's text on every rank.
std::string broadcast_text(Communicator& comm, const std::string& text, int root);

}  // namespace trireme
