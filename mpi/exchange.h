// Exchange: what one operation does on the transport: the transfers it has under way, its deadline,
// and its name for errors. Made by the caller, then used by the progress thread alone.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>

#include "mpi/transport.h"

namespace trireme {

// Which operation of its communicator it is.
struct OperationLabel {
  std::string_view name;
  std::int64_t number = 0;
  std::int64_t bytes = 0;
  // "all_reduce #4711 (12.6 MiB)"
  std::string text() const;
};

// Polls cost a core, sleeps cost latency: a short while of the first, then ever longer sleeps.
class Backoff {
 public:
  // Zero while polling should go on at once.
  std::chrono::microseconds next();

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point spin_until_ = Clock::now() + std::chrono::microseconds(30);
  std::chrono::microseconds sleep_{50};
};

class Exchange {
 public:
  using Clock = std::chrono::steady_clock;

  // While it waits, it calls `meanwhile` between two polls.
  Exchange(Transport& transport, const OperationLabel& label, Clock::duration limit,
           std::function<void()> meanwhile)
      : transport_(transport), label_(label), limit_(limit), meanwhile_(std::move(meanwhile)) {}

  // The deadline counts from here.
  void begin() { deadline_ = Clock::now() + limit_; }

  int rank() const { return transport_.rank(); }
  int size() const { return transport_.size(); }

  // Any number of bytes up to kMaxTransferBytes.
  TransferId send(const void* data, std::int64_t bytes, int to, int tag = kCollectiveTag);
  TransferId recv(void* data, std::int64_t bytes, int from, int tag = kCollectiveTag);
  void wait(TransferId id);
  void wait_all();

  // Asks once whether all transfers have finished. Hang when the deadline has passed.
  bool settled();

 private:
  struct Transfer {
    TransferId id;
    std::int64_t bytes;
    int peer;
    bool sends;
  };
  bool finished(TransferId id);
  void check_deadline() const;
  std::string describe_transfers() const;

  Transport& transport_;
  OperationLabel label_;
  Clock::duration limit_;
  std::function<void()> meanwhile_;
  Clock::time_point deadline_{};
  std::vector<Transfer> transfers_;  // under way, in the order of their start
};

}  // namespace trireme
