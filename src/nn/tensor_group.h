// TensorGroup is the interface of the tensor-parallel ranks that compute one layer together
// (Shoeybi et al., Megatron-LM, 2019), as layers use it. All ranks of the group make the same calls
// in the same order. Implemented in src/parallel; without one, a Run's layers are whole. One
// thread.
#pragma once

#include <cstdint>

#include "src/device/device.h"
#include "src/device/pool.h"

namespace trireme {

class TensorGroup {
 public:
  virtual ~TensorGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns the pool for tensors that are passed to the calls below, which then transfer them
  // without a copy.
  virtual Pool& pool() = 0;

  // Exchange is the number of an operation that was started, from 1 on; 0 means none. Operations
  // end in the order of their start. Until then, their data must stay alive and unchanged.
  using Exchange = std::int64_t;

  // Replaces data (f32, bf16 or f64) by the sum over the ranks, in tree order.
  virtual Exchange start_sum(View data) = 0;
  // The same for data of size() equal blocks: only this rank's block becomes the sum, and the
  // others are undefined afterwards.
  virtual Exchange start_scatter_sum(View data) = 0;
  // data holds size() equal blocks. This rank's own block is given; all others are filled.
  virtual Exchange start_gather(View data) = 0;
  // Returns when that operation, and all before it, have ended.
  virtual void finish(Exchange exchange) = 0;

  void sum(View data) { finish(start_sum(data)); }
  void gather(View data) { finish(start_gather(data)); }
};

}  // namespace trireme
