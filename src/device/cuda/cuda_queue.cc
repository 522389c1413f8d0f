#include "src/device/cuda/cuda_queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <cuda_flavour.h>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_counts.h"
#include "src/device/cuda/short_copy.h"

namespace trireme::cuda {
namespace {

// A waiting thread looks this often at an event without giving up its processor. Then it sleeps
// between two looks, for a sixteenth of the time that it has waited, within these bounds.
constexpr int kQuickLooks = 2000;
constexpr std::chrono::nanoseconds kShortestPause = std::chrono::microseconds(20);
constexpr std::chrono::nanoseconds kLongestPause = std::chrono::microseconds(100);
constexpr std::size_t kMostByKernel = std::size_t{1} << 20;    // bytes; engines copy what is longer
constexpr std::int64_t kMostStaged = std::int64_t{256} << 20;  // bytes; a copy of more waits

bool is_reached(int device, cudaEvent_t event) {
  use_device(device);
  const cudaError_t state = cudaEventQuery(event);
  if (state == cudaErrorNotReady) {
    return false;
  }
  cuda_check(state, "cudaEventQuery");
  return true;
}

// Returns whether the device can access this memory of the host while the host computes.
bool is_pinned(const void* data) {
  cudaPointerAttributes attributes{};
  const cudaError_t error = cudaPointerGetAttributes(&attributes, data);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();  // an unknown pointer is an error in some versions
    return false;
  }
  return attributes.type == cudaMemoryTypeHost;
}

}  // namespace

Events::~Events() {
  (void)cudaSetDevice(device_);
  for (const cudaEvent_t event : free_) {
    (void)cudaEventDestroy(event);
  }
}

cudaEvent_t Events::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      const cudaEvent_t event = free_.back();
      free_.pop_back();
      return event;
    }
  }
  use_device(device_);
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreateWithFlags(&event, flags_), "cudaEventCreate");
  return event;
}

void Events::give_back(cudaEvent_t event) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(event);
}

void* Staging::take(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  in_use_.push_back(pool_.allocate(bytes));
  bytes_ += bytes;
  ++taken_;
  return in_use_.back().data();
}

void Staging::release(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  while (!in_use_.empty() && taken_ - static_cast<std::int64_t>(in_use_.size()) < number) {
    bytes_ -= in_use_.front().bytes();
    in_use_.pop_front();
  }
}

std::int64_t Staging::bytes() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void CudaQueue::Failure::rethrow() {
  const std::lock_guard lock(mutex);
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

class CudaQueue::Point : public StreamEvent::Point, public NativeEvent {
 public:
  explicit Point(const CudaQueue& queue)
      : events_(queue.events_),
        failure_(queue.failure_),
        staging_(queue.staging_),
        awaited_(queue.awaited_),
        staged_(queue.staging_->number()),
        event_(events_->take()) {
    cuda_check(cudaEventRecord(event_, queue.stream_), "cudaEventRecord");
  }
  ~Point() override { events_->give_back(event_); }
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  cudaEvent_t native() const override { return event_; }
  void rethrow_failure() override {
    failure_->rethrow();
    for (const StreamEvent& event : awaited_) {
      dynamic_cast<NativeEvent&>(*event.point()).rethrow_failure();
    }
  }
  bool reached() override {
    if (!was_reached_.load() && is_reached(events_->device(), event_)) {
      was_reached_ = true;
    }
    return was_reached_.load();
  }
  // Counts a wait unless an earlier call has found that the point was reached, so that the number
  // of waits depends on the program alone, not on the device's speed.
  void wait() override {
    if (!was_reached_.load()) {
      count_wait();
    }
    const auto begin = std::chrono::steady_clock::now();
    for (int looks = 0; !reached(); ++looks) {
      if (looks >= kQuickLooks) {
        const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
        std::this_thread::sleep_for(std::clamp(waited / 16, kShortestPause, kLongestPause));
      }
    }
    staging_->release(staged_);
    rethrow_failure();
  }

 private:
  std::shared_ptr<Events> events_;
  std::shared_ptr<Failure> failure_;
  std::shared_ptr<Staging> staging_;
  std::vector<StreamEvent> awaited_;
  std::int64_t staged_;  // number of buffers whose copies come before the point
  std::atomic<bool> was_reached_ = false;
  cudaEvent_t event_;
};

class CudaQueue::Mark : public StreamMark::Point {
 public:
  explicit Mark(const CudaQueue& queue) : events_(queue.timed_events_), event_(events_->take()) {
    cuda_check(cudaEventRecord(event_, queue.stream_), "cudaEventRecord");
  }
  ~Mark() override { events_->give_back(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  double seconds_to(StreamMark::Point& later) override {
    use_device(events_->device());
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, event_, dynamic_cast<Mark&>(later).event_),
               "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  std::shared_ptr<Events> events_;
  cudaEvent_t event_;
};

struct CudaQueue::HostWork {
  std::function<void()> work;
  std::shared_ptr<Failure> failure;
};

// A stream for copies has another priority than those for work: a kernel must not wait behind a
// copy in a queue of the hardware, which streams of one priority share.
CudaQueue::CudaQueue(int device, QueueUse use)
    : device_(device),
      use_(use),
      events_(std::make_shared<Events>(device, cudaEventDisableTiming)),
      timed_events_(std::make_shared<Events>(device, cudaEventDefault)),
      staging_(std::make_shared<Staging>(device)) {
  use_device(device);
  int least = 0;
  int greatest = 0;
  cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest),
             "cudaDeviceGetStreamPriorityRange");
  cuda_check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                          use == QueueUse::copies ? greatest : least),
             "cudaStreamCreateWithPriority");
}

CudaQueue::~CudaQueue() {
  (void)cudaSetDevice(device_);
  (void)cudaStreamSynchronize(stream_);
  (void)cudaStreamDestroy(stream_);
}

void CudaQueue::run_host_work(void* data) {
  const std::unique_ptr<HostWork> task(static_cast<HostWork*>(data));
  {
    const std::lock_guard lock(task->failure->mutex);
    if (task->failure->error != nullptr) {
      return;
    }
  }
  try {
    task->work();
  } catch (...) {
    const std::lock_guard lock(task->failure->mutex);
    task->failure->error = std::current_exception();
  }
}

// A graph would repeat the work or the copy with memory that is gone, and nobody could wait for
// its events.
void CudaQueue::refuse_in_capture(const char* what) const { check(!captures_, what); }

void CudaQueue::begin_capture() {
  use_device(device_);
  refuse_in_capture("a graph cannot be recorded within another");
  cuda_check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
             "cudaStreamBeginCapture");
  captures_ = true;
}

cudaGraph_t CudaQueue::end_capture() {
  check(captures_, "a graph is being recorded");
  captures_ = false;
  cudaGraph_t graph = nullptr;
  cuda_check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
  return graph;
}

void CudaQueue::abandon_capture() noexcept {
  if (!captures_) {
    return;
  }
  captures_ = false;
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(stream_, &graph) == cudaSuccess) {
    (void)cudaGraphDestroy(graph);
  }
  (void)cudaGetLastError();  // the next check must not see the error of a refused call
}

void CudaQueue::run(std::function<void()> work) {
  refuse_in_capture("a graph cannot hold work of the host");
  use_device(device_);
  auto task = std::make_unique<HostWork>(HostWork{std::move(work), failure_});
  cuda_check(cudaLaunchHostFunc(stream_, &CudaQueue::run_host_work, task.get()),
             "cudaLaunchHostFunc");
  (void)task.release();  // run_host_work() owns it now
}

StreamEvent CudaQueue::record() {
  refuse_in_capture("a graph cannot hold events");
  use_device(device_);
  drop_reached();
  return StreamEvent(std::make_shared<Point>(*this));
}

StreamMark CudaQueue::mark() {
  refuse_in_capture("a graph cannot hold marks of time");
  use_device(device_);
  return StreamMark(std::make_shared<Mark>(*this));
}

void CudaQueue::wait(const StreamEvent& event) {
  if (event.point() == nullptr) {
    return;
  }
  refuse_in_capture("a graph cannot hold waits for events");
  auto* const native = dynamic_cast<NativeEvent*>(event.point());
  if (native == nullptr) {
    StreamQueue::wait(event);
    return;
  }
  use_device(device_);
  cuda_check(cudaStreamWaitEvent(stream_, native->native(), 0), "cudaStreamWaitEvent");
  awaited_.push_back(event);
}

// Forgets awaited events that have been reached, and keeps the error of those that failed.
void CudaQueue::drop_reached() {
  std::erase_if(awaited_, [this](const StreamEvent& event) {
    if (!event.reached()) {
      return false;
    }
    try {
      dynamic_cast<NativeEvent&>(*event.point()).rethrow_failure();
    } catch (...) {
      const std::lock_guard lock(failure_->mutex);
      failure_->error = std::current_exception();
    }
    return true;
  });
}

// Devices can access pinned memory at the address that the host uses.
void CudaQueue::transfer(void* to, const void* from, std::size_t bytes) {
  if (use_ == QueueUse::work && bytes <= kMostByKernel) {
    const bool can = can_copy(to, bytes) && can_copy(from, bytes);
    cuda_check(can ? cudaSuccess : cudaErrorInvalidValue, "a copy");
    copy_by_kernel(to, from, bytes, stream_);
  } else {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
}

void CudaQueue::copy(const View& to, const ConstView& from) {
  use_device(device_);
  const auto bytes = static_cast<std::size_t>(from.bytes());
  if (from.device.is_host() || to.device.is_host()) {
    refuse_in_capture("a graph cannot hold copies from or to the host");
  }
  if (from.device.is_host() && to.device.is_host()) {
    run([to, from, bytes] { std::memcpy(to.data, from.data, bytes); });
    return;
  }
  const void* const on_host = from.device.is_host() ? from.data : to.data;
  if (!(from.device.is_host() || to.device.is_host()) || is_pinned(on_host)) {
    transfer(to.data, from.data, bytes);
    return;
  }
  if (staging_->bytes() + from.bytes() > kMostStaged) {
    record().wait();
  }
  count_staged_copy();
  void* const buffer = staging_->take(from.bytes());
  if (from.device.is_host()) {
    std::memcpy(buffer, from.data, bytes);
    transfer(to.data, buffer, bytes);
  } else {
    transfer(buffer, from.data, bytes);
    run([to, buffer, bytes] { std::memcpy(to.data, buffer, bytes); });
  }
}

void CudaQueue::clear(const View& view) {
  if (view.device.is_host()) {
    StreamQueue::clear(view);
    return;
  }
  use_device(device_);
  cuda_check(cudaMemsetAsync(view.data, 0, static_cast<std::size_t>(view.bytes()), stream_),
             "cudaMemsetAsync");
}

namespace {

CudaQueue& cuda_queue(Stream& stream) {
  check(stream.device().kind == DeviceKind::cuda && stream.queue() != nullptr,
        "kernels of a CUDA device run on a stream of such a device");
  use_device(stream.device().index);
  return static_cast<CudaQueue&>(*stream.queue());
}

}  // namespace

cudaStream_t cuda_stream(Stream& stream) { return cuda_queue(stream).native(); }
Scratch& cuda_scratch(Stream& stream) { return cuda_queue(stream).scratch(); }

std::shared_ptr<StreamQueue> make_queue(int index, QueueUse use) {
  (void)device_facts(index);  // refuses a device before the first kernel fails on it
  return std::make_shared<CudaQueue>(index, use);
}

}  // namespace trireme::cuda
