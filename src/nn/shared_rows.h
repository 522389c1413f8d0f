// From the rows of the stream that a tensor-parallel rank holds to all of them, and back. Where the
// rows are not shared out, or nobody is there to share with, the stream is held whole.
#pragma once

#include "src/nn/run.h"
#include "src/tensor/tensor.h"

namespace trireme {

// own: T [1, B T / ranks, C] or, whole, [B,T,C] -> T [B,T,C]
Tensor gather_rows(const Tensor& own, Run& run);
// Starts to sum `part`, T [B,T,C], this rank's summand, from the run's shared pool. It is used up.
void start_row_sum(const Tensor& part, Run& run);
// Waits for that: T [1, B T / ranks, C] or, whole, [B,T,C].
Tensor finish_row_sum(const Tensor& part, Run& run);
inline Tensor sum_rows(const Tensor& part, Run& run) {
  start_row_sum(part, run);
  return finish_row_sum(part, run);
}

}  // namespace trireme
