// Stream is ordered work on one device, and StreamEvent is a point in that order. On the CPU, a
// stream runs its work either at once on the caller's thread, as kernels do, or on a worker thread
// of its own; on a CUDA device, work is queued there. Owned by a DeviceContext or a test. Only one
// thread at a time may use a stream; any thread may use an event.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "src/device/device.h"

namespace trireme {

// StreamEvent is reached when everything before it has finished. A value; copies are the same
// point.
class StreamEvent {
 public:
  class Point {
   public:
    virtual ~Point() = default;
    virtual bool reached() = 0;
    // Blocks the calling thread. Throws what prevents the point from being reached.
    virtual void wait() = 0;
  };
  // Constructs an event that has been reached.
  StreamEvent() = default;
  explicit StreamEvent(std::shared_ptr<Point> point) : point_(std::move(point)) {}

  // Returns the point, which a queue may know as its own; null if the event has been reached.
  Point* point() const { return point_.get(); }
  bool reached() const { return point_ == nullptr || point_->reached(); }
  void wait() const {
    if (point_ != nullptr) {
      point_->wait();
    }
  }

 private:
  std::shared_ptr<Point> point_;
};

// StreamMark notes the time at a point in the order of a stream: by the device's clock if the work
// is queued on a device, otherwise by the host's. A value.
class StreamMark {
 public:
  class Point {
   public:
    virtual ~Point() = default;
    // Returns the seconds from here to a later point of the same stream; both have been reached.
    virtual double seconds_to(Point& later) = 0;
  };
  // Marks the present, for a stream whose work runs at once.
  StreamMark() = default;
  explicit StreamMark(std::shared_ptr<Point> point) : point_(std::move(point)) {}

  // Returns the seconds from this mark to a later one of the same stream. Everything before the
  // later one must have finished, and the host must have waited for it.
  double seconds_to(const StreamMark& later) const {
    return point_ != nullptr ? point_->seconds_to(*later.point_)
                             : std::chrono::duration<double>(later.time_ - time_).count();
  }

 private:
  std::shared_ptr<Point> point_;
  std::chrono::steady_clock::time_point time_ = std::chrono::steady_clock::now();
};

// StreamQueue keeps the order of a stream whose work does not run at once.
class StreamQueue {
 public:
  virtual ~StreamQueue() = default;
  // Runs work of the host, which must not use the queue itself.
  virtual void run(std::function<void()> work) = 0;
  // Returns the point after all work so far.
  virtual StreamEvent record() = 0;
  // Marks the time at which all work so far has finished.
  virtual StreamMark mark();
  // Lets later work start only once the event is reached.
  virtual void wait(const StreamEvent& event) {
    run([event] { event.wait(); });
  }
  // These do what Stream's functions of the same names say.
  virtual void copy(const View& to, const ConstView& from);
  virtual void clear(const View& view);
};

// Runs work on a thread of its own. After work that throws, later work is skipped, and waiting for
// an event of the queue throws the same. Finishes its work before it ends.
std::shared_ptr<StreamQueue> make_worker_queue();

class Stream {
 public:
  // threads: how many a kernel uses on the CPU. Without a queue, work has finished when the call
  // that queues it returns. The CPU's kernels run on the caller's thread in any case: a stream with
  // a queue takes them inside run().
  Stream(Device device, int threads, std::shared_ptr<StreamQueue> queue = nullptr)
      : device_(device), threads_(threads), queue_(std::move(queue)) {}
  Device device() const { return device_; }
  int threads() const { return threads_; }
  StreamQueue* queue() const { return queue_.get(); }

  // Runs work of the host in the stream's order.
  void run(std::function<void()> work) {
    if (queue_ == nullptr) {
      work();
    } else {
      queue_->run(std::move(work));
    }
  }
  // Copies elements in the stream's order; the views have equal types and counts and lie on the
  // stream's device or the host, which must keep its memory unchanged from the call until the copy
  // has finished. Between a device and memory of the host that is not pinned, the copy has read its
  // source on the host when the call returns.
  void copy(const View& to, const ConstView& from);
  // Sets all bytes to zero, in the stream's order.
  void clear(const View& view);

  // Returns when all work so far has finished.
  void synchronize() { record().wait(); }
  // Returns the point after all work so far.
  StreamEvent record() { return queue_ == nullptr ? StreamEvent() : queue_->record(); }
  StreamMark mark() { return queue_ == nullptr ? StreamMark() : queue_->mark(); }
  // Lets later work start only once the event is reached; blocks the caller if work runs at once.
  void wait(const StreamEvent& event) {
    if (queue_ == nullptr) {
      event.wait();
    } else {
      queue_->wait(event);
    }
  }

 private:
  Device device_;
  int threads_;
  std::shared_ptr<StreamQueue> queue_;
};

}  // namespace trireme
