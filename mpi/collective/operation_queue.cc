#include "mpi/collective/operation_queue.h"

#include <ctime>
#include <utility>

#include <pthread.h>
#include <sys/prctl.h>

#include "src/base/floating_point.h"

namespace trireme {
namespace {

// The longest time that an operation with Start::when_waited_for is queued if no caller waits for
// it.
constexpr std::chrono::milliseconds kRound{10};
// After this many rounds without an operation the progress thread sleeps until it is woken.
constexpr int kIdleRounds = 10;

// Sets the timer slack to 1 us, because the default of 50 us is too long for sleeps of tens of
// microseconds.
void prepare_thread() {
  restore_floating_point();
  ::pthread_setname_np(::pthread_self(), "trireme-comm");
  (void)::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
}

// Returns the time of the kernel's last tick, which is up to some milliseconds old, on the same
// clock as steady_clock. It is cheaper to read than the precise time, which matters for the
// smallest operations.
Exchange::Clock::time_point coarse_now() {
  timespec time{};
  (void)::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return Exchange::Clock::time_point(std::chrono::seconds(time.tv_sec) +
                                     std::chrono::nanoseconds(time.tv_nsec));
}

}  // namespace

class OperationQueue::Operation : public Pending::Operation {
 public:
  Operation(OperationQueue& queue, Exchange exchange, Start start, Body body)
      : queue_(queue), exchange_(std::move(exchange)), start_(start), body_(std::move(body)) {
    if (queue_.watch_ != nullptr) {
      ticket_ = queue_.watch_->queued(exchange_.label(), now());
    }
  }

  // The queue exists while the operation is unfinished, because its destructor fails all unfinished
  // operations.
  void wait() override {
    if (!is_done()) {
      queue_.help(*this);
      restore_floating_point();  // the caller computes next, and the transport may have changed it
    }
    if (error_ != nullptr) {
      std::rethrow_exception(error_);
    }
  }
  bool reached() override { return is_done(); }
  bool is_done() const { return finished_.load(); }
  void abandon() noexcept override {
    if (!is_done()) {
      queue_.give_up();
      queue_.help(*this);
    }
  }

  // The next three functions are called by the driver.
  void start() {
    const auto begin = now();
    exchange_.begin(begin);
    if (queue_.watch_ != nullptr) {
      queue_.watch_->started(ticket_, begin);
    }
    body_(exchange_);
  }
  bool settled() { return exchange_.settled(); }
  void finish(std::exception_ptr error) {
    error_ = std::move(error);
    OperationQueue& queue = queue_;
    if (queue.watch_ != nullptr) {
      queue.watch_->ended(ticket_, exchange_.label(), error_ != nullptr, now());
    }
    finished_.store(true);
    queue.wake_helpers();
  }

 private:
  Exchange::Clock::time_point now() const {
    const bool precise = queue_.watch_ != nullptr && queue_.watch_->wants_precise_times();
    return start_ == Start::when_waited_for && !precise ? coarse_now() : Exchange::Clock::now();
  }

  OperationQueue& queue_;
  Exchange exchange_;
  Start start_;
  Body body_;
  FlightTicket ticket_ = 0;
  std::exception_ptr error_;  // written before finished_, read after it
  std::atomic<bool> finished_ = false;
};

OperationQueue::~OperationQueue() {
  give_up();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Pending OperationQueue::push(OperationLabel label, Exchange::Clock::duration limit, Start start,
                             Body body) {
  label.number = is_collective(label.kind) ? collectives_++ : transfers_++;
  auto operation = std::make_shared<Operation>(
      *this,
      Exchange(
          transport_, label, limit, [this] { settle_started(); }, watch_),
      start, std::move(body));
  std::unique_lock lock(mutex_);
  if (const std::exception_ptr failure = failure_; failure != nullptr) {
    lock.unlock();
    operation->finish(failure);
    return Pending(operation);
  }
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { run(); });
  }
  const bool is_next = waiting_.empty();
  Pending pending(operation);
  waiting_.push_back(std::move(operation));
  ++pushed_;
  if (start == Start::at_once && is_next && take_seat(lock)) {
    round(lock);
    leave_seat(lock);
  } else if (start != Start::when_waited_for || thread_sleeps_) {
    changed_.notify_all();
  }
  return pending;
}

bool OperationQueue::take_seat(const std::unique_lock<std::mutex>&) {
  return !std::exchange(driven_, true);
}

void OperationQueue::leave_seat(const std::unique_lock<std::mutex>&) {
  driven_ = false;
  busy_ = !started_.empty();
  if (busy_ || !waiting_.empty() || helpers_.load() > 0) {
    changed_.notify_all();
  }
}

void OperationQueue::round(std::unique_lock<std::mutex>& lock) noexcept {
  if (!waiting_.empty()) {
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
  }
  lock.unlock();
  try {
    if (current_ != nullptr) {
      current_->start();
      started_.push_back(std::move(current_));
    }
    settle_started();
  } catch (...) {
    fail(std::current_exception());
  }
  lock.lock();
}

// A body that waits also calls this, between its polls.
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

void OperationQueue::check_given_up() const {
  if (given_up_.load()) {
    throw CommError(fmt::format("{} stopped communicating after an error",
                                transport_.members().describe(transport_.rank())));
  }
}

void OperationQueue::fail(const std::exception_ptr& error) noexcept {
  transport_.cancel_all();
  std::vector<OperationPtr> lost = std::move(started_);
  started_.clear();
  if (current_ != nullptr) {
    lost.push_back(std::move(current_));
  }
  {
    const std::lock_guard lock(mutex_);
    failure_ = error;
    lost.insert(lost.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  for (const OperationPtr& operation : lost) {
    operation->finish(error);
  }
}

// Runs on the progress thread. It checks on the operations under way ever more rarely, and leaves
// the seat in between, so that a caller that waits can take it.
void OperationQueue::run() {
  prepare_thread();
  Backoff backoff(transport_);
  std::unique_lock lock(mutex_);
  std::int64_t known = 0;  // operations that had been pushed when the thread last looked
  int idle_rounds = 0;
  const auto is_needed = [this] { return !waiting_.empty() || busy_ || given_up_.load(); };
  while (failure_ == nullptr) {
    if (driven_ || !is_needed()) {
      idle_rounds = driven_ || known != pushed_ ? 0 : idle_rounds + 1;
      known = pushed_;
      thread_sleeps_ = idle_rounds >= kIdleRounds;
      if (thread_sleeps_) {
        changed_.wait(lock, [&] { return is_needed() || failure_ != nullptr; });
        thread_sleeps_ = false;
        idle_rounds = 0;
      } else {
        changed_.wait_for(lock, kRound);
      }
      backoff = Backoff(transport_);
      continue;
    }
    idle_rounds = 0;
    (void)take_seat(lock);
    round(lock);
    leave_seat(lock);
    if (const auto sleep = backoff.next(); busy_ && waiting_.empty() && sleep.count() > 0) {
      changed_.wait_for(lock, sleep);
    }
  }
}

// Drives the queue, or waits while another thread does, until the operation has finished.
void OperationQueue::help(const Operation& operation) {
  std::unique_lock lock(mutex_);
  while (!operation.is_done()) {
    if (!take_seat(lock)) {
      helpers_.fetch_add(1);
      changed_.wait(lock, [&] { return operation.is_done() || !driven_; });
      helpers_.fetch_sub(1);
      continue;
    }
    Backoff backoff(transport_);
    for (round(lock); !operation.is_done(); round(lock)) {
      if (const auto sleep = backoff.next(); sleep.count() > 0) {
        lock.unlock();
        transport_.pause(sleep);
        lock.lock();
      }
    }
    leave_seat(lock);
  }
}

void OperationQueue::wake_helpers() {
  if (helpers_.load() > 0) {
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }
}

void OperationQueue::give_up() noexcept {
  {
    const std::lock_guard lock(mutex_);
    given_up_.store(true);
  }
  changed_.notify_all();
}

}  // namespace trireme
