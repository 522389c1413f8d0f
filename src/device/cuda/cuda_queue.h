// CudaQueue is the queue of a stream on a CUDA device. Owned by its Stream; used by one thread at a
// time. Its events may be used by any thread and may outlive it.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime.h>

#include "src/device/cuda/scratch.h"
#include "src/device/cuda_device.h"
#include "src/device/pool.h"
#include "src/device/stream.h"

namespace trireme::cuda {

// Events keeps CUDA events for reuse, because making one takes longer than recording it.
class Events {
 public:
  // flags: those of cudaEventCreateWithFlags.
  Events(int device, unsigned flags) : device_(device), flags_(flags) {}
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  int device() const { return device_; }
  cudaEvent_t take();
  void give_back(cudaEvent_t event) noexcept;

 private:
  int device_;
  unsigned flags_;
  std::mutex mutex_;  // guards free_
  std::vector<cudaEvent_t> free_;
};

// NativeEvent is what a point of a stream offers beside StreamEvent::Point, so that the device and
// not the host waits for it.
class NativeEvent {
 public:
  virtual ~NativeEvent() = default;
  virtual cudaEvent_t native() const = 0;
  // Throws the error of the work before the event, which has been reached.
  virtual void rethrow_failure() = 0;
};

// Staging holds the pinned memory over which ordinary memory of the host is copied. A buffer is
// free again when the host has waited for a later point of the queue, and not as soon as its copy
// has finished: how much memory a step takes must not depend on how far the host is ahead.
class Staging {
 public:
  explicit Staging(int device) : pool_(Device::cpu(), pinned_memory(device)) {}

  // Returns pinned memory that stays in use until release() of a later number().
  void* take(std::int64_t bytes);
  // Returns the number of buffers taken so far.
  std::int64_t number() const { return taken_; }
  // Frees the buffers whose number is below the given one. Any thread.
  void release(std::int64_t number);
  // Returns the bytes in use.
  std::int64_t bytes();

 private:
  std::mutex mutex_;  // guards the members below
  Pool pool_;
  std::deque<Buffer> in_use_;
  std::int64_t bytes_ = 0;
  std::int64_t taken_ = 0;  // changed by the thread of the queue only
};

class CudaQueue : public StreamQueue {
 public:
  CudaQueue(int device, QueueUse use);
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  int device() const { return device_; }
  cudaStream_t native() const { return stream_; }
  // Returns the scratch memory of the kernels on this stream.
  Scratch& scratch() { return scratch_; }

  void run(std::function<void()> work) override;
  StreamEvent record() override;
  StreamMark mark() override;
  // If the event belongs to work that fails, waiting for a later event of this queue throws the
  // same error. Work of the device goes on, with undefined results.
  void wait(const StreamEvent& event) override;
  // Memory of the host that is not pinned is copied over a pinned buffer. If it is the source, it
  // is read before the call returns. Waits if very much is being copied in this way. On a queue for
  // work, kernels copy what is short, so that a step need not wait until a long copy of another
  // queue has ended.
  void copy(const View& to, const ConstView& from) override;
  void clear(const View& view) override;

  // Record work instead of performing it (src/device/cuda_graph.h). Only this thread is kept from
  // what a recording forbids: those that save or communicate go on.
  void begin_capture();
  cudaGraph_t end_capture();
  void abandon_capture() noexcept;

 private:
  // Failure is what work of the host has thrown; the queue and its events share it.
  struct Failure {
    std::mutex mutex;
    std::exception_ptr error;
    void rethrow();
  };
  class Point;
  class Mark;
  struct HostWork;
  static void run_host_work(void* work);
  void drop_reached();
  void refuse_in_capture(const char* what) const;
  void transfer(void* to, const void* from, std::size_t bytes);

  int device_;
  QueueUse use_;
  bool captures_ = false;
  std::shared_ptr<Events> events_;
  std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  std::shared_ptr<Events> timed_events_;
  std::shared_ptr<Staging> staging_;
  std::vector<StreamEvent> awaited_;  // those of other streams that may still fail
  cudaStream_t stream_ = nullptr;
  Scratch scratch_;
};

// Returns the CUDA stream of a stream on a CUDA device, which becomes the device of the calling
// thread.
cudaStream_t cuda_stream(Stream& stream);
// Returns the scratch memory of such a stream, after the same.
Scratch& cuda_scratch(Stream& stream);

}  // namespace trireme::cuda
