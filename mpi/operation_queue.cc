#include "mpi/operation_queue.h"

#include <pthread.h>
#include <sys/prctl.h>

namespace trireme {
namespace {

// Sleeps of tens of microseconds need a finer timer than the default slack of 50.
void prepare_thread() {
  ::pthread_setname_np(::pthread_self(), "trireme-comm");
  (void)::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
}

}  // namespace

class OperationQueue::Operation : public Pending::Operation {
 public:
  Operation(OperationQueue& queue, Exchange exchange, Body body)
      : queue_(queue), exchange_(std::move(exchange)), body_(std::move(body)) {}

  void wait() override {
    finished_.wait(0, std::memory_order_acquire);
    if (error_ != nullptr) {
      std::rethrow_exception(error_);
    }
  }
  bool done() override { return finished_.load(std::memory_order_acquire) != 0; }
  // The queue is there as long as an operation is unfinished: it fails them when it ends.
  void abandon() noexcept override {
    if (!done()) {
      queue_.give_up();
      finished_.wait(0, std::memory_order_acquire);
    }
  }

  // The progress thread's part.
  void start() {
    exchange_.begin();
    body_(exchange_);
  }
  bool settled() { return exchange_.settled(); }
  void finish(std::exception_ptr error) {
    error_ = std::move(error);
    finished_.store(1, std::memory_order_release);
    finished_.notify_all();
  }

 private:
  OperationQueue& queue_;
  Exchange exchange_;
  Body body_;
  std::exception_ptr error_;  // written before finished_, read after it
  std::atomic<int> finished_ = 0;
};

OperationQueue::~OperationQueue() {
  give_up();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Pending OperationQueue::push(std::string_view name, std::int64_t bytes,
                             Exchange::Clock::duration limit, Body body) {
  const OperationLabel label{name, pushed_++, bytes};
  auto operation = std::make_shared<Operation>(
      *this, Exchange(transport_, label, limit, [this] { settle_started(); }), std::move(body));
  {
    const std::lock_guard lock(mutex_);
    if (failure_ != nullptr) {
      operation->finish(failure_);
      return Pending(operation);
    }
    waiting_.push_back(operation);
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
  changed_.notify_one();
  return Pending(operation);
}

void OperationQueue::run() {
  prepare_thread();
  try {
    while (true) {
      current_ = next();
      current_->start();
      started_.push_back(std::move(current_));
      settle_started();
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

OperationQueue::OperationPtr OperationQueue::next() {
  Backoff backoff;
  std::unique_lock lock(mutex_);
  while (waiting_.empty()) {
    if (!started_.empty()) {
      lock.unlock();
      settle_started();
      lock.lock();
      if (const auto sleep = backoff.next(); sleep.count() > 0) {
        changed_.wait_for(lock, sleep, [this] { return !waiting_.empty(); });
      }
    } else {
      check_given_up();
      changed_.wait(lock, [this] { return given_up_.load() || !waiting_.empty(); });
    }
  }
  OperationPtr operation = std::move(waiting_.front());
  waiting_.pop_front();
  return operation;
}

void OperationQueue::check_given_up() const {
  if (given_up_.load()) {
    throw CommError(fmt::format("{} gave up its communication after an error",
                                describe_rank(transport_, transport_.rank())));
  }
}

// Also called between the polls of the body that runs.
void OperationQueue::settle_started() {
  check_given_up();
  for (std::size_t i = 0; i < started_.size();) {
    if (started_[i]->settled()) {
      started_[i]->finish(nullptr);
      started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

void OperationQueue::fail(const std::exception_ptr& error) noexcept {
  transport_.cancel_all();
  const std::lock_guard lock(mutex_);
  failure_ = error;
  if (current_ != nullptr) {
    current_->finish(error);
  }
  for (const OperationPtr& operation : started_) {
    operation->finish(error);
  }
  for (const OperationPtr& operation : waiting_) {
    operation->finish(error);
  }
  started_.clear();
  waiting_.clear();
}

void OperationQueue::give_up() noexcept {
  {
    const std::lock_guard lock(mutex_);
    given_up_.store(true);
  }
  changed_.notify_one();
}

}  // namespace trireme
