#include "src/device/cuda_timing.h"

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_queue.h"

namespace trireme::cuda {
namespace {

// TimedEvent is a point of a stream whose time the device notes.
class TimedEvent {
 public:
  TimedEvent() {
    cuda_check(cudaEventCreateWithFlags(&event_, cudaEventDefault), "cudaEventCreate");
  }
  ~TimedEvent() { (void)cudaEventDestroy(event_); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;

  void record(cudaStream_t stream) {
    cuda_check(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  double seconds_since(const TimedEvent& start) const {
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double device_seconds(Stream& stream, const std::function<void()>& work) {
  const cudaStream_t native = cuda_stream(stream);
  TimedEvent start;
  TimedEvent end;
  start.record(native);
  work();
  end.record(native);
  stream.synchronize();
  return end.seconds_since(start);
}

}  // namespace trireme::cuda
