// Graphs of work on a CUDA device: what is queued on a stream is recorded instead of performed, and
// the whole of it is then queued with one call, as often as wanted. A graph repeats exactly what
// was recorded, with the addresses and numbers that the calls had then; its owner keeps the memory
// and puts new values there. Linked like src/device/cuda_device.h. The thread of the stream calls
// all of this.
#pragma once

#include <cstdint>
#include <memory>

#include "src/device/stream.h"

namespace trireme::cuda {

class Graph {
 public:
  virtual ~Graph() = default;
  // Queues all of its work on a stream of the device on which it was recorded.
  virtual void launch(Stream& stream) = 0;
  // Returns the number of kernels, copies and fills in it.
  virtual std::int64_t nodes() const = 0;
};

// From now on, kernels, copies within the device and fills on the stream are recorded. Until the
// end, this thread must neither allocate device memory nor wait for the device; events, work of the
// host and copies from or to the host on this stream throw InternalError, because a graph could not
// repeat them. Other threads may do all of this. Throws ConfigError in a program without CUDA.
void begin_graph(Stream& stream);
// Ends the recording; null if nothing was recorded. Throws DeviceError if something was refused.
std::unique_ptr<Graph> end_graph(Stream& stream);
// Ends the recording, if there is one, and drops it.
void abandon_graph(Stream& stream) noexcept;

}  // namespace trireme::cuda
