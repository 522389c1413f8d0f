// OperationQueue: runs the operations of one communicator in order, on a progress thread of its own
// that starts with the first of them. An operation's body may leave transfers under way (a send or
// recv does nothing else): the next operation starts, and the operation ends when they have
// finished. After an error everything under way and everything later fails with it. Pushed to by
// one thread; Pendings may be waited for on any.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "mpi/communicator.h"
#include "mpi/exchange.h"

namespace trireme {

class OperationQueue {
 public:
  using Body = std::function<void(Exchange&)>;

  // The transport outlives the queue.
  explicit OperationQueue(Transport& transport) : transport_(transport) {}
  // Gives up what has not finished.
  ~OperationQueue();
  OperationQueue(const OperationQueue&) = delete;
  OperationQueue& operator=(const OperationQueue&) = delete;

  Pending push(std::string_view name, std::int64_t bytes, Exchange::Clock::duration limit,
               Body body);

 private:
  class Operation;
  using OperationPtr = std::shared_ptr<Operation>;

  void run();
  OperationPtr next();
  void check_given_up() const;
  void settle_started();
  void fail(const std::exception_ptr& error) noexcept;
  void give_up() noexcept;

  Transport& transport_;
  std::thread thread_;

  std::mutex mutex_;  // guards the next three
  std::condition_variable changed_;
  std::deque<OperationPtr> waiting_;
  std::exception_ptr failure_;
  std::atomic<bool> given_up_ = false;

  std::int64_t pushed_ = 0;            // the caller's
  OperationPtr current_;               // the progress thread's: its body runs
  std::vector<OperationPtr> started_;  // likewise: body done, transfers under way
};

}  // namespace trireme
