// How the host waits for streams and events, and asks how far they are.
#include <algorithm>
#include <chrono>

#include "src/device/sim/capture.h"
#include "src/device/sim/machine.h"

namespace sim {
namespace {

constexpr int kEagerLooks = 10;  // answers to a thread that asks about one event, at once
constexpr std::chrono::microseconds kLook{1000};  // later ones wait for so long at most

}  // namespace

cudaError_t Machine::synchronize(cudaStream_t stream) {
  std::unique_lock lock(mutex);
  const CUstream_st* from = resolve(stream);
  if (from == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (from->capture != nullptr) {
    from->capture->is_valid = false;
    return cudaErrorStreamCaptureUnsupported;
  }
  const std::uint64_t last = from->enqueued;
  finished_.wait(lock, [&] { return from->finished >= last || error_ != cudaSuccess; });
  return error_;
}

cudaError_t Machine::synchronize_device(int device) {
  std::unique_lock lock(mutex);
  const std::uint64_t last = sequence_;
  finished_.wait(lock, [&] {
    return error_ != cudaSuccess ||
           std::all_of(streams_.begin(), streams_.end(), [=](const auto& stream) {
             return stream->device != device || stream->queue.empty() ||
                    stream->queue.front().sequence > last;
           });
  });
  return error_;
}

cudaError_t Machine::synchronize(const std::shared_ptr<EventState>& event) {
  std::unique_lock lock(mutex);
  const std::uint64_t last = event->recorded;
  finished_.wait(lock, [&] { return event->reached >= last || error_ != cudaSuccess; });
  return error_;
}

cudaError_t Machine::query(const std::shared_ptr<EventState>& event) {
  static thread_local const EventState* asked = nullptr;
  static thread_local int looks = 0;
  looks = asked == event.get() ? looks + 1 : 0;
  asked = event.get();
  std::unique_lock lock(mutex);
  const auto is_reached = [&] { return event->reached >= event->recorded; };
  if (looks >= kEagerLooks) {
    finished_.wait_for(lock, kLook, [&] { return is_reached() || error_ != cudaSuccess; });
  }
  if (error_ != cudaSuccess) {
    return error_;  // events behind the failure are reached, too, so that nobody waits for them
  }
  return is_reached() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t Machine::query(cudaStream_t stream) {
  const std::lock_guard lock(mutex);
  const CUstream_st* from = resolve(stream);
  if (from == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (from->capture != nullptr) {
    from->capture->is_valid = false;
    return cudaErrorStreamCaptureUnsupported;
  }
  if (error_ != cudaSuccess) {
    return error_;
  }
  return from->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

}  // namespace sim
