// From the rows of the stream that a tensor-parallel rank holds to all of them, and back. Where the
// rows are not shared out, or nobody is there to share with, the stream is held whole, and nothing
// moves. While backward waits for rows or sums it works off the weight gradients that wait for that
// (Run::waiting).
#pragma once

#include <memory>

#include "src/nn/run.h"
#include "src/tensor/tensor.h"

namespace trireme {

// All rows, [B,T,C], of which every rank of the group gives its own. Copies are the same rows.
class GatheredRows {
 public:
  // own: T [1, B T / ranks, C] or, whole, [B,T,C]
  GatheredRows(Tensor own, const Run& run);
  // Sends this rank's rows, once.
  void start(Run& run) const;
  // For rows that only gradients of weights read: now or, where those are put off, when it is their
  // turn.
  void start_for_weights(Run& run) const;
  // Waits for the others'. Starts first if nobody did.
  Tensor whole(Run& run) const;

 private:
  struct State {
    Tensor own;  // until started
    Shape shape;
    Tensor all;
    TensorGroup::Exchange exchange = 0;
  };
  std::shared_ptr<State> state_;
};

// T [B,T,C]
inline Tensor gather_rows(const Tensor& own, Run& run) { return GatheredRows(own, run).whole(run); }

// Starts to sum `part`, T [B,T,C], this rank's summand, from the run's shared pool. It is used up.
TensorGroup::Exchange start_row_sum(const Tensor& part, Run& run);
// Waits for that: T [1, B T / ranks, C] or, whole, [B,T,C].
Tensor finish_row_sum(const Tensor& part, TensorGroup::Exchange sum, Run& run);
inline Tensor sum_rows(const Tensor& part, Run& run) {
  return finish_row_sum(part, start_row_sum(part, run), run);
}

}  // namespace trireme
