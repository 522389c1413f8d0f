// OperationQueue runs the operations of one communicator in order. They run on the thread that
// drives the queue: its own progress thread, while the caller computes, or a caller that waits
// anyway, which avoids a switch to that thread. One thread drives at a time: it holds the seat. An
// operation's body may leave transfers under way (a send or recv does nothing else); then the next
// operation starts, and the first ends when its transfers have finished. After an error, all
// operations under way and all later ones fail with it. One thread may push; any thread may wait
// for a Pending.
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

  // Says when and where an operation starts if none is queued before it.
  enum class Start {
    at_once,         // on the caller's thread, for bodies that do not wait
    in_background,   // on the progress thread, or on that of a caller that waits
    when_waited_for  // on the waiting caller's thread, or in the progress thread's next round
  };

  // The transport and the watch outlive the queue. The watch may be null.
  explicit OperationQueue(Transport& transport, GroupWatch* watch = nullptr)
      : transport_(transport), watch_(watch) {}
  // Gives up all operations that have not finished.
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  // Numbers the operation and queues it.
  Pending push(OperationLabel label, Exchange::Clock::duration limit, Start start, Body body);

 private:
  class Operation;
  using OperationPtr = std::shared_ptr<Operation>;

  // Take or leave the seat, with the lock held; take_seat() returns whether the seat was free. The
  // driver works without the lock. Leaving the seat wakes the threads that have work to do.
  bool take_seat(const std::unique_lock<std::mutex>& lock);
  void leave_seat(const std::unique_lock<std::mutex>& lock);
  // Starts the next operation and checks on those under way. The caller holds the seat and the
  // lock; the lock is released in between.
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

  std::mutex mutex_;  // guards the next seven members
  std::condition_variable changed_;
  std::deque<OperationPtr> waiting_;
  std::exception_ptr failure_;
  std::int64_t pushed_ = 0;       // number of operations
  bool thread_sleeps_ = false;    // whether the progress thread sleeps until it is woken
  bool driven_ = false;           // whether a thread holds the seat
  bool busy_ = false;             // whether transfers were under way when the seat was left
  std::atomic<int> helpers_ = 0;  // number of callers that sleep in help()
  std::atomic<bool> given_up_ = false;

  std::int64_t collectives_ = 0;  // used by the caller: the next number of a collective operation
  std::int64_t transfers_ = 0;    // used by the caller: the next number of a send or recv
  OperationPtr current_;          // used by the driver: the operation whose body runs
  std::vector<OperationPtr> started_;  // used by the driver: their transfers are under way
};

}  // namespace trireme
