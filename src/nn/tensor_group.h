// TensorGroup: the tensor-parallel ranks that compute one layer together (Shoeybi et al.,
// Megatron-LM, 2019), as layers see them: who they are and what they exchange. Every rank of the
// group makes the same calls in the same order. Implemented in src/parallel; a Run without one
// computes alone. One thread.
#pragma once

#include "src/device/device.h"
#include "src/device/pool.h"

namespace trireme {

class TensorGroup {
 public:
  virtual ~TensorGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // For tensors that go through the calls below: they move without a copy.
  virtual Pool& pool() = 0;

  // Starts replacing data (f32, bf16, f64) by the sum over the ranks, in tree order. The data must
  // stay alive and untouched until finish().
  virtual void start_sum(View data) = 0;
  // The same of size() equal blocks: this rank's own block becomes the sum, the others end
  // undefined.
  virtual void start_scatter_sum(View data) = 0;
  // Returns when all that was started has been summed.
  virtual void finish() = 0;
  // data holds size() equal blocks: every rank's own is given, all are filled.
  virtual void gather(View data) = 0;

  void sum(View data) {
    start_sum(data);
    finish();
  }
};

}  // namespace trireme
