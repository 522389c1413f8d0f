// Exchange holds what one operation does on the transport: the transfers that it has under way, its
// deadline, and its label for errors. Made by the caller, then used by whichever thread drives the
// queue.
#pragma once

#include <functional>

#include "mpi/collective/transport.h"
#include "mpi/watch/group_watch.h"
#include "src/base/fault.h"

namespace trireme {

// Decides how long a waiting thread sleeps between two polls. Polling costs a core and sleeping
// costs latency, so it polls for a short while and then sleeps, each time longer.
class Backoff {
 public:
  explicit Backoff(const Transport& transport);

  // Returns how long to sleep now; zero means to poll again at once.
  std::chrono::microseconds next();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point spin_until_{};  // set at the first call, because many waits end before it
  std::chrono::microseconds sleep_{50};
  std::chrono::microseconds longest_;
};

class Exchange {
 public:
  using Clock = std::chrono::steady_clock;

  // While the exchange waits, it calls `meanwhile` between two polls. `watch` finds out which ranks
  // are responsible if the deadline passes; it may be null.
  Exchange(Transport& transport, const OperationLabel& label, Clock::duration limit,
           std::function<void()> meanwhile, GroupWatch* watch = nullptr)
      : transport_(transport),
        label_(label),
        limit_(limit),
        meanwhile_(std::move(meanwhile)),
        watch_(watch) {}

  // Sets the deadline to `limit` after `now`.
  void begin(Clock::time_point now) { deadline_ = now + limit_; }

  // Returns an exchange for the same operation on a part of its group. It has the same label,
  // deadline and watch, but transfers of its own, for which the caller waits.
  Exchange over(Transport& part) const;

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }
  const OperationLabel& label() const { return label_; }
  // Returns "rank 3 (host n2)" for a rank of this group.
  std::string describe(int rank) const { return transport_.members().describe(rank); }

  // Transfers have at most kMaxTransferBytes.
  TransferId send(const void* data, std::int64_t bytes, int to, int tag = kCollectiveTag);
  TransferId recv(void* data, std::int64_t bytes, int from, int tag = kCollectiveTag);
  // See Transport::start_recv_of_any_length().
  TransferId recv_of_any_length(void* data, std::int64_t bytes, std::int64_t room, int from);
  void wait(TransferId id);
  void wait_all();

  // Polls once and returns whether all transfers have finished. Throws Hang if the deadline has
  // passed.
  bool settled();

  // Waits until ready() returns true, for conditions other than transfers. `awaited` returns the
  // ranks of the group that it waits for, for errors. The first kTightPolls polls follow each other
  // directly.
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
  // Throws Hang if the deadline has passed, here or on another rank. From time to time, also checks
  // for dead peers, which are a CommError.
  void check_deadline(const std::function<std::string()>& still_waiting);
  void check_peers() const;
  [[noreturn]] void rethrow_with_label(const CommError& error) const;
  // Runs `meanwhile` and sleeps between two polls.
  void rest(Backoff& backoff);
  std::string describe_hang(bool here, const std::string& still_waiting) const;
  std::string describe_transfers() const;
  std::string describe_awaited(const std::vector<int>& ranks) const;

  Transport& transport_;
  int group_size_ = transport_.size();  // of the operation's whole group; see over()
  OperationLabel label_;
  Clock::duration limit_;
  std::function<void()> meanwhile_;
  GroupWatch* watch_;
  Clock::time_point deadline_{};
  Clock::time_point next_check_{};
  std::vector<Transfer> transfers_;  // under way, in order of their start
};

}  // namespace trireme
