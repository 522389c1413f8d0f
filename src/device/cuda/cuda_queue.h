// CudaQueue is the queue of a stream on a CUDA device. Owned by its Stream; used by one thread at a
// time. Its events may be used by any thread and may outlive it.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime.h>

#include "src/device/pool.h"
#include "src/device/stream.h"

namespace trireme::cuda {

// Events keeps CUDA events for reuse, because making one takes longer than recording it.
class Events {
 public:
  explicit Events(int device) : device_(device) {}
  ~Events();
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  cudaEvent_t take();
  void give_back(cudaEvent_t event) noexcept;

 private:
  int device_;
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

class CudaQueue : public StreamQueue {
 public:
  explicit CudaQueue(int device);
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  int device() const { return device_; }
  cudaStream_t native() const { return stream_; }

  void run(std::function<void()> work) override;
  StreamEvent record() override;
  // If the event belongs to work that fails, waiting for a later event of this queue throws the
  // same error. Work of the device goes on, with undefined results.
  void wait(const StreamEvent& event) override;
  // Memory of the host that is not pinned is copied over a pinned buffer. If it is the source, it
  // is read before the call returns.
  void copy(const View& to, const ConstView& from) override;
  void clear(const View& view) override;

 private:
  // Failure is what work of the host has thrown; the queue and its events share it.
  struct Failure {
    std::mutex mutex;
    std::exception_ptr error;
    void rethrow();
  };
  class Point;
  struct HostWork;
  static void run_host_work(void* work);
  void drop_reached();

  int device_;
  std::shared_ptr<Events> events_;
  std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  std::shared_ptr<Pool> pinned_;
  std::vector<StreamEvent> awaited_;  // those of other streams that may still fail
  cudaStream_t stream_ = nullptr;
};

// Returns the CUDA stream of a stream on a CUDA device, which becomes the device of the calling
// thread.
cudaStream_t cuda_stream(Stream& stream);

}  // namespace trireme::cuda
