// BatchSource delivers the batches of one accelerator, in order, and reads ahead meanwhile. For one
// thread.
#pragma once

namespace trireme {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Waits until the next batch is in memory. Rethrows the error that occurred when it was read.
  virtual void next() = 0;
};

}  // namespace trireme
