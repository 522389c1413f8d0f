// Adapters fine-tune a Linear whose weight W stays as it is: two matrices A and B of low rank r
// learn what W lacks (Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, 2021).
//
//   y = x W + scale (x A^T) B^T        A [r,in], B [out,r]
//
// If W is made up of several parameters (queries, keys, values), each of them can have an adapter
// of its own, which adds to its columns of y. The matrices A of one Linear are joined in the store.
// B is stored [out,r] or, beside a weight that is stored [in,out], as its transpose [r,out]. In a
// tensor-parallel group, one of the two is divided as W is, and all ranks hold the other one alike.
// Holds parameter ids and sizes; has no state.
#pragma once

#include <vector>

#include "src/nn/run.h"
#include "src/tensor/tensor.h"

namespace trireme {

struct Adapters {
  // Slot is one adapter: it adds to `out` columns of y, from `first` on.
  struct Slot {
    ParameterId b = -1;
    std::int64_t first = 0;
    std::int64_t out = 0;
  };

  ParameterId a = -1;            // that of the first slot; those of the others follow it
  std::vector<Slot> slots = {};  // sorted by `first`; empty: the Linear has no adapters
  std::int64_t rank = 0;
  std::int64_t in = 0;   // of the Linear, as is `out`
  std::int64_t out = 0;  // columns of y
  float scale = 0;
  bool transposed = false;  // whether B is stored [out,r]
  // Whether the group's ranks divide the columns of y, and hold A alike, or divide those of x, and
  // hold B alike. The gradient of what they hold alike is a sum over the ranks.
  bool divides_out = true;

  bool empty() const { return slots.empty(); }
  // y += scale (x A^T) B^T, for x T [R,in] and y T or f32 [R,out]. In a group whose ranks divide x,
  // y is this rank's summand.
  void add_forward(const ConstView& x, const View& y, Run& run) const;
  // dx += scale (dy B) A, for dy T [R,out] and dx T or f32 [R,in].
  void add_backward_input(const ConstView& dy, const View& dx, Run& run) const;
  // Computes the gradients of A and B from dy T [R,out] and x T [R,in].
  void backward_weight(const ConstView& dy, const ConstView& x, Run& run) const;
  // Announces to run.gradients that these gradients are final.
  void announce(Run& run) const;

 private:
  std::int64_t width() const { return rank * static_cast<std::int64_t>(slots.size()); }
  Tensor narrowed(const Tensor& sums, DType dtype, Run& run) const;
  Tensor project_down(const ConstView& x, Run& run) const;
  Tensor project_back(const ConstView& dy, Run& run) const;
};

}  // namespace trireme
