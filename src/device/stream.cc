#include "src/device/stream.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace trireme {
namespace {

// Progress is what the worker shares with the events of its queue, which may outlive it.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t finished = 0;  // pieces of work, in their order
  std::exception_ptr failure;
};

class WorkerPoint : public StreamEvent::Point {
 public:
  WorkerPoint(std::shared_ptr<Progress> progress, std::int64_t number)
      : progress_(std::move(progress)), number_(number) {}

  bool reached() override {
    const std::lock_guard lock(progress_->mutex);
    return progress_->finished >= number_;
  }
  void wait() override {
    std::unique_lock lock(progress_->mutex);
    progress_->changed.wait(lock, [this] { return progress_->finished >= number_; });
    if (progress_->failure != nullptr) {
      std::rethrow_exception(progress_->failure);
    }
  }

 private:
  std::shared_ptr<Progress> progress_;
  std::int64_t number_;
};

class WorkerQueue : public StreamQueue {
 public:
  WorkerQueue() : thread_([this] { work(); }) {}
  ~WorkerQueue() override {
    {
      const std::lock_guard lock(progress_->mutex);
      ending_ = true;
    }
    progress_->changed.notify_all();
    thread_.join();
  }
  WorkerQueue(const WorkerQueue&) = delete;
  WorkerQueue& operator=(const WorkerQueue&) = delete;

  void run(std::function<void()> work) override {
    {
      const std::lock_guard lock(progress_->mutex);
      waiting_.push_back(std::move(work));
      ++queued_;
    }
    progress_->changed.notify_all();
  }
  StreamEvent record() override {
    return StreamEvent(std::make_shared<WorkerPoint>(progress_, queued_));
  }

 private:
  void work() {
    std::unique_lock lock(progress_->mutex);
    while (true) {
      progress_->changed.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) {
        return;
      }
      const std::function<void()> next = std::move(waiting_.front());
      waiting_.pop_front();
      if (progress_->failure == nullptr) {
        lock.unlock();
        std::exception_ptr failure = outcome_of(next);
        lock.lock();
        progress_->failure = std::move(failure);
      }
      ++progress_->finished;
      progress_->changed.notify_all();
    }
  }
  static std::exception_ptr outcome_of(const std::function<void()>& work) {
    try {
      work();
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  std::shared_ptr<Progress> progress_ =
      std::make_shared<Progress>();  // its mutex guards the next two
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::int64_t queued_ = 0;  // used by the caller's thread
  std::thread thread_;       // uses all other members
};

class HostMark : public StreamMark::Point {
 public:
  double seconds_to(Point& later) override {
    return std::chrono::duration<double>(dynamic_cast<HostMark&>(later).time - time).count();
  }
  std::chrono::steady_clock::time_point time;  // set by the queue's work
};

}  // namespace

std::shared_ptr<StreamQueue> make_worker_queue() { return std::make_shared<WorkerQueue>(); }

StreamMark StreamQueue::mark() {
  const auto mark = std::make_shared<HostMark>();
  run([mark] { mark->time = std::chrono::steady_clock::now(); });
  return StreamMark(mark);
}

void StreamQueue::copy(const View& to, const ConstView& from) {
  check(to.device.is_host() && from.device.is_host(), "this queue copies within the host");
  run([to, from] { std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes())); });
}

void StreamQueue::clear(const View& view) {
  check(view.device.is_host(), "this queue writes to the host's memory");
  run([view] { std::memset(view.data, 0, static_cast<std::size_t>(view.bytes())); });
}

void Stream::copy(const View& to, const ConstView& from) {
  check(to.dtype == from.dtype && to.count == from.count, "a copy is as large as its source");
  if (device_.kind == DeviceKind::counting || to.count == 0) {
    return;
  }
  if (queue_ != nullptr) {
    queue_->copy(to, from);
    return;
  }
  check(to.device.is_host() && from.device.is_host(), "this device copies within the host");
  std::memcpy(to.data, from.data, static_cast<std::size_t>(from.bytes()));
}

void Stream::clear(const View& view) {
  if (device_.kind == DeviceKind::counting || view.count == 0) {
    return;
  }
  if (queue_ != nullptr) {
    queue_->clear(view);
    return;
  }
  check(view.device.is_host(), "this device writes to the host's memory");
  std::memset(view.data, 0, static_cast<std::size_t>(view.bytes()));
}

}  // namespace trireme
