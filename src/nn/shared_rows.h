// Converts between the rows of the stream that one tensor-parallel rank holds and all rows. If the
// rows are not shared, or the group has one rank, the stream is whole and nothing is transferred.
// While backward waits for rows or sums, it computes the weight gradients in Run::waiting. One
// thread.
#pragma once

#include <memory>

#include "src/nn/run.h"
#include "src/tensor/tensor.h"

namespace trireme {

// GatheredRows are all rows [B,T,C], gathered from the ranks of the group. Copies refer to the same
// rows.
class GatheredRows {
 public:
  // own: T [1, B T / ranks, C] or, if whole, [B,T,C]
  GatheredRows(Tensor own, const Run& run);
  // Starts the all-gather of the rows, unless it was started before.
  void start(Run& run) const;
  // Starts the all-gather for rows that only weight gradients read: now, or when the weight
  // gradients in run.later are computed if those are put off.
  void start_for_weights(Run& run) const;
  // Waits for all rows, and starts the all-gather if that has not been done.
  Tensor whole(Run& run) const;

 private:
  struct State {
    Tensor own;  // empty once the all-gather has started
    Shape shape;
    Tensor all;
    TensorGroup::Exchange exchange = 0;
  };
  std::shared_ptr<State> state_;
};

// Returns all rows, T [B,T,C].
inline Tensor gather_rows(const Tensor& own, Run& run) { return GatheredRows(own, run).whole(run); }

// Starts to sum `part`, this rank's summand T [B,T,C] from the run's shared pool, over the ranks.
// `part` is overwritten.
TensorGroup::Exchange start_row_sum(const Tensor& part, Run& run);
// Waits for that sum, and returns T [1, B T / ranks, C] or, if whole, [B,T,C].
Tensor finish_row_sum(const Tensor& part, TensorGroup::Exchange sum, Run& run);
inline Tensor sum_rows(const Tensor& part, Run& run) {
  return finish_row_sum(part, start_row_sum(part, run), run);
}

}  // namespace trireme
