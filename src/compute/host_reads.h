// HostReads copies results of a device to the host, with one wait for all of them. Used once: add()
// what is to be read, wait(), and look at it. Owned by the code that reads; one thread; the context
// outlives it.
#pragma once

#include <span>
#include <vector>

#include "src/compute/device_context.h"

namespace trireme {

class HostReads {
 public:
  explicit HostReads(DeviceContext& context) : context_(context) {}

  // Queues the copy of a view, which must stay alive until wait(). Returns the number of the read.
  std::size_t add(const ConstView& view);
  // Returns when all work on the stream so far has finished.
  void wait() { context_.stream().synchronize(); }
  // Returns the elements of a read, of type T, after wait(). They are zeros on a counting device.
  template <class T>
  std::span<const T> at(std::size_t read) const {
    const View view = reads_[read].buffer.view(reads_[read].dtype);
    return {as<T>(view), static_cast<std::size_t>(view.count)};
  }

 private:
  struct Read {
    Buffer buffer;
    DType dtype;
  };
  DeviceContext& context_;
  std::vector<Read> reads_;
};

}  // namespace trireme
