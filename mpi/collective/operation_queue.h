// OperationQueue: runs the operations of one communicator in order. Whoever drives the queue runs
// them: its own progress thread, while the caller computes, or a caller that waits anyway and so
// spares the switch to that thread. One thread drives at a time. An operation's body may leave
// transfers under way (a send or recv does nothing else): the next operation starts, and the
// operation ends when they have finished. After an error everything under way and everything later
// fails with it. Pushed to by one thread; Pendings may be waited for on any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "mpi/collective/exchange.h"
#include "mpi/communicator.h"

namespace trireme {

class OperationQueue {
 public:
  using Body = std::function<void(Exchange&)>;

  // When an operation starts, if nothing stands before it.
  enum class Start {
    at_once,         // on the caller's thread: a body that does not wait
    in_background,   // on the progress thread, or on a caller's that waits
    when_waited_for  // on the waiting caller's thread, or on the progress thread's next round
  };

  // The transport outlives the queue, and so does the watch, where there is one.
  explicit OperationQueue(Transport& transport, GroupWatch* watch = nullptr)
      : transport_(transport), watch_(watch) {}
  // Gives up what has not finished.
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // Gives the operation its number.
  Pending push(OperationLabel label, Exchange::Clock::duration limit, Start start, Body body);

 private:
  class Operation;
  using OperationPtr = std::shared_ptr<Operation>;

  // The seat: taken with the lock held, used without it. Leaving wakes whoever has work to do.
  bool take_seat(const std::unique_lock<std::mutex>& lock);
  void leave_seat(const std::unique_lock<std::mutex>& lock);
  // One round in the seat: starts the next operation, looks after those under way. The lock is
  // held before and after, not in between.
  void round(std::unique_lock<std::mutex>& lock) noexcept;
  void settle_started();
  void check_given_up() const;
  void fail(const std::exception_ptr& error) noexcept;

  void run();
  void help(const Operation& operation);
  void wake_helpers();
  void give_up() noexcept;

  Transport& transport_;
  GroupWatch* watch_;
  std::thread thread_;

  std::mutex mutex_;  // guards the next five
  std::condition_variable changed_;
  std::deque<OperationPtr> waiting_;
  std::exception_ptr failure_;
  bool driven_ = false;           // somebody sits in the seat
  bool busy_ = false;             // transfers were under way when the seat was left
  std::atomic<int> helpers_ = 0;  // callers that sleep until an operation or the seat is theirs
  std::atomic<bool> given_up_ = false;

  std::int64_t collectives_ = 0;       // the caller's: numbers given out
  std::int64_t transfers_ = 0;         // likewise, of sends and receives
  OperationPtr current_;               // the driver's: its body runs
  std::vector<OperationPtr> started_;  // likewise: body done, transfers under way
};

}  // namespace trireme
