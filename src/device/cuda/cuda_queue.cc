#include "src/device/cuda/cuda_queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda_device.h"

namespace trireme::cuda {
namespace {

// A waiting thread looks this often at an event without giving up its processor. Then it sleeps
// between two looks, for a sixteenth of the time that it has waited, within these bounds.
constexpr int kQuickLooks = 2000;
constexpr std::chrono::nanoseconds kShortestPause = std::chrono::microseconds(20);
constexpr std::chrono::nanoseconds kLongestPause = std::chrono::milliseconds(1);

bool is_reached(cudaEvent_t event) {
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
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return event;
}

void Events::give_back(cudaEvent_t event) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(event);
}

void CudaQueue::Failure::rethrow() {
  const std::lock_guard lock(mutex);
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

class CudaQueue::Point : public StreamEvent::Point, public NativeEvent {
 public:
  Point(std::shared_ptr<Events> events, std::shared_ptr<Failure> failure,
        std::vector<StreamEvent> awaited, cudaStream_t stream)
      : events_(std::move(events)),
        failure_(std::move(failure)),
        awaited_(std::move(awaited)),
        event_(events_->take()) {
    cuda_check(cudaEventRecord(event_, stream), "cudaEventRecord");
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
  bool reached() override { return is_reached(event_); }
  void wait() override {
    const auto begin = std::chrono::steady_clock::now();
    for (int looks = 0; !is_reached(event_); ++looks) {
      if (looks >= kQuickLooks) {
        const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
        std::this_thread::sleep_for(std::clamp(waited / 16, kShortestPause, kLongestPause));
      }
    }
    rethrow_failure();
  }

 private:
  std::shared_ptr<Events> events_;
  std::shared_ptr<Failure> failure_;
  std::vector<StreamEvent> awaited_;
  cudaEvent_t event_;
};

struct CudaQueue::HostWork {
  std::function<void()> work;
  std::shared_ptr<Failure> failure;
};

CudaQueue::CudaQueue(int device)
    : device_(device),
      events_(std::make_shared<Events>(device)),
      pinned_(std::make_shared<Pool>(Device{}, pinned_memory())) {
  cuda_check(cudaSetDevice(device), "cudaSetDevice");
  cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
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

void CudaQueue::run(std::function<void()> work) {
  auto task = std::make_unique<HostWork>(HostWork{std::move(work), failure_});
  cuda_check(cudaLaunchHostFunc(stream_, &CudaQueue::run_host_work, task.get()),
             "cudaLaunchHostFunc");
  (void)task.release();  // run_host_work() owns it now
}

StreamEvent CudaQueue::record() {
  drop_reached();
  return StreamEvent(std::make_shared<Point>(events_, failure_, awaited_, stream_));
}

void CudaQueue::wait(const StreamEvent& event) {
  if (event.point() == nullptr) {
    return;
  }
  auto* const native = dynamic_cast<NativeEvent*>(event.point());
  if (native == nullptr) {
    StreamQueue::wait(event);
    return;
  }
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

void CudaQueue::copy(const View& to, const ConstView& from) {
  const auto bytes = static_cast<std::size_t>(from.bytes());
  const auto transfer = [&](void* target, const void* source) {
    cuda_check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream_),
               "cudaMemcpyAsync");
  };
  if (from.device.is_host() && to.device.is_host()) {
    run([to, from, bytes] { std::memcpy(to.data, from.data, bytes); });
    return;
  }
  const void* const on_host = from.device.is_host() ? from.data : to.data;
  if (!(from.device.is_host() || to.device.is_host()) || is_pinned(on_host)) {
    transfer(to.data, from.data);
    return;
  }
  const auto buffer = std::make_shared<Buffer>(pinned_->allocate(from.bytes()));
  if (from.device.is_host()) {
    std::memcpy(buffer->data(), from.data, bytes);
    transfer(to.data, buffer->data());
    run([pool = pinned_, buffer] {});  // keeps the buffer until the copy has finished
  } else {
    transfer(buffer->data(), from.data);
    run([pool = pinned_, buffer, to, bytes] { std::memcpy(to.data, buffer->data(), bytes); });
  }
}

void CudaQueue::clear(const View& view) {
  if (view.device.is_host()) {
    StreamQueue::clear(view);
    return;
  }
  cuda_check(cudaMemsetAsync(view.data, 0, static_cast<std::size_t>(view.bytes()), stream_),
             "cudaMemsetAsync");
}

cudaStream_t cuda_stream(Stream& stream) {
  check(stream.device().kind == DeviceKind::cuda && stream.queue() != nullptr,
        "kernels of a CUDA device run on a stream of such a device");
  cuda_check(cudaSetDevice(stream.device().index), "cudaSetDevice");
  return static_cast<CudaQueue*>(stream.queue())->native();
}

std::shared_ptr<StreamQueue> make_queue(int index) { return std::make_shared<CudaQueue>(index); }

}  // namespace trireme::cuda
