// TensorGroup: the tensor-parallel ranks that compute one layer together (Shoeybi et al.,
// Megatron-LM, 2019), as layers see them: who they are and what they exchange. Every rank of the
// group makes the same calls in the same order. Implemented in src/parallel; a Run without one
// computes alone. One thread.
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
  // For tensors that go through the calls below: they move without a copy.
  virtual Pool& pool() = 0;

  // The number of an exchange that was started, from 1 on; 0 is none. They end in this order. Until
  // it has ended its data must stay alive and untouched.
  using Exchange = std::int64_t;

  // Replaces data (f32, bf16, f64) by the sum over the ranks, in tree order.
  virtual Exchange start_sum(View data) = 0;
  // The same of size() equal blocks: this rank's own block becomes the sum, the others end
  // undefined.
  virtual Exchange start_scatter_sum(View data) = 0;
  // data holds size() equal blocks: every rank's own is given, all are filled.
  virtual Exchange start_gather(View data) = 0;
  // Returns when that exchange, and with it all before, has ended.
  virtual void finish(Exchange exchange) = 0;

  void sum(View data) { finish(start_sum(data)); }
  void gather(View data) { finish(start_gather(data)); }
};

}  // namespace trireme
