// Exchange: what one operation does on the transport: the transfers it has under way, its deadline,
// and its name for errors. Made by the caller, then used by whichever thread drives the queue.
#pragma once

#include <functional>

#include "mpi/collective/transport.h"
#include "mpi/watch/group_watch.h"
#include "src/base/fault.h"

namespace trireme {

// Polls cost a core, sleeps cost latency: a short while of the first, then ever longer sleeps.
class Backoff {
 public:
  explicit Backoff(const Transport& transport);

  // Zero while polling should go on at once.
  std::chrono::microseconds next();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point spin_until_{};  // set when it is first asked: many waits end before
  std::chrono::microseconds sleep_{50};
  std::chrono::microseconds longest_;
};

class Exchange {
 public:
  using Clock = std::chrono::steady_clock;

  // While it waits, it calls `meanwhile` between two polls. `watch` finds out who is to blame for a
  // deadline that passes; null: nobody does.
  Exchange(Transport& transport, const OperationLabel& label, Clock::duration limit,
           std::function<void()> meanwhile, GroupWatch* watch = nullptr)
      : transport_(transport),
        label_(label),
        limit_(limit),
        meanwhile_(std::move(meanwhile)),
        watch_(watch) {}

  // The deadline counts from here.
  void begin(Clock::time_point now) { deadline_ = now + limit_; }

  // The same operation on a part of its group: with this one's name, deadline and watch, and
  // transfers of its own, which the caller waits for.
  Exchange over(Transport& part) const;

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  const OperationLabel& label() const { return label_; }
  // "rank 3 (host n2)", of this group's rank.
  std::string describe(int rank) const { return transport_.members().describe(rank); }

  // Any number of bytes up to kMaxTransferBytes.
  TransferId send(const void* data, std::int64_t bytes, int to, int tag = kCollectiveTag);
  TransferId recv(void* data, std::int64_t bytes, int from, int tag = kCollectiveTag);
  // See Transport::start_recv_of_any_length().
  TransferId recv_of_any_length(void* data, std::int64_t bytes, std::int64_t room, int from);
  void wait(TransferId id);
  void wait_all();

  // Asks once whether all transfers have finished. Hang when the deadline has passed.
  bool settled();

  // Waits until `ready()`, for conditions other than transfers. `awaited()` names the ranks of the
  // group that it waits for, for errors. The first kTightPolls are as short as can be.
  template <class Ready, class Awaited>
  void wait_until(Ready ready, Awaited awaited) {
    fault("comm.wait");
    for (int poll = 0; poll < kTightPolls; ++poll) {
      if (ready()) {
        return;
      }
      __builtin_ia32_pause();
    }
    Backoff backoff(transport_);
    while (!ready()) {
      check_deadline([&] { return describe_awaited(awaited()); });
      rest(backoff);
    }
  }

 private:
  struct Transfer {
    TransferId id;
    std::int64_t bytes;
    int peer;
    bool sends;
  };
  static constexpr int kTightPolls = 500;
  bool finished(TransferId id);
  // Hang when the deadline has passed, here or on another rank; CommError for a dead peer, asked
  // now and then.
  void check_deadline(const std::function<std::string()>& still_waiting);
  void check_peers() const;
  [[noreturn]] void rethrow_with_label(const CommError& error) const;
  // Between two polls.
  void rest(Backoff& backoff);
  std::string describe_hang(bool here, const std::string& still_waiting) const;
  std::string describe_transfers() const;
  std::string describe_awaited(const std::vector<int>& ranks) const;

  Transport& transport_;
  int group_size_ = transport_.size();  // of the operation's group, of which this may be a part
  OperationLabel label_;
  Clock::duration limit_;
  std::function<void()> meanwhile_;
  GroupWatch* watch_;
  Clock::time_point deadline_{};
  Clock::time_point next_check_{};
  std::vector<Transfer> transfers_;  // under way, in the order of their start
};

}  // namespace trireme
