// StreamSeconds adds up how long parts of a stream's work took: by the host's clock if the work
// runs at once, otherwise by the device's clock, which the host reads later. A value; one thread.
//
//   { const StreamTimer timer(stream, seconds); pending.wait(stream); }
#pragma once

#include <exception>
#include <utility>
#include <vector>

#include "src/device/stream.h"

namespace trireme {

class StreamSeconds {
 public:
  void add(Stream& stream, const StreamMark& from, const StreamMark& to) {
    if (stream.queue() == nullptr) {
      known_ += from.seconds_to(to);
    } else {
      parts_.emplace_back(from, to);
    }
  }
  // Forgets all parts, whether or not they have ended.
  void clear() { *this = {}; }
  // Returns the sum. The host has waited for all parts.
  double seconds() const {
    double sum = known_;
    for (const auto& [from, to] : parts_) {
      sum += from.seconds_to(to);
    }
    return sum;
  }

 private:
  double known_ = 0;
  std::vector<std::pair<StreamMark, StreamMark>> parts_;
};

// StreamTimer adds the work that is queued between its construction and its destruction. Its
// destructor throws DeviceError if the device cannot note the time, and adds nothing while another
// exception propagates.
class StreamTimer {
 public:
  // Both arguments outlive it.
  StreamTimer(Stream& stream, StreamSeconds& to) : stream_(stream), to_(to), from_(stream.mark()) {}
  ~StreamTimer() noexcept(false) {
    if (std::uncaught_exceptions() == exceptions_) {
      to_.add(stream_, from_, stream_.mark());
    }
  }
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

 private:
  Stream& stream_;
  StreamSeconds& to_;
  StreamMark from_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace trireme
