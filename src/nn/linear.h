// Linear: y = x W + bias and its gradients, over the rows of x. W is stored [in,out] (GPT-2's
// Conv1D) or, transposed, [out,in]. Several parameters that lie joined in the store (queries, keys,
// values) may make up one W. In a tensor-parallel group W is this rank's part of the columns or of
// the rows of the whole.
#pragma once

#include "src/nn/layer.h"

namespace trireme {

inline constexpr ParameterId kNoParameter = -1;

struct Linear {
  ParameterId weight = kNoParameter;
  int weights = 1;  // parameters that make up W, from `weight` on; more than one: transposed only
  ParameterId bias = kNoParameter;
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool transposed = false;
  bool adds_bias = true;  // false: another rank of the group adds it to the sum

  // x T [R,in] -> y T or f32 [R,out]. With `before` T [R,out]: before = x W + bias, y =
  // gelu(before).
  void forward(const ConstView& x, const View& y, Run& run, const View& before = {}) const;
  // Gradients of W and bias from dy T [R,out] and x T [R,in]; `accumulate` adds to W's (no bias).
  void backward_weight(const ConstView& dy, const ConstView& x, Run& run,
                       bool accumulate = false) const;
  // dx = dy W^T: T or f32 [R,in]. With `before` T [R,in]: dx = dy W^T gelu'(before).
  void backward_input(const ConstView& dy, const View& dx, Run& run, const View& before = {}) const;
  // dx += dy W^T, dx f32 [R,in].
  void backward_input_add(const ConstView& dy, const View& dx, Run& run) const;
  // Tells run.gradients that those of W and bias are final.
  void announce(Run& run) const;
  // The end of a branch's backward: the gradients of W and bias, and that of x, which may take x's
  // place. In a group its sum is started, and goes on while W's is computed.
  BranchGradient backward_entry(const Tensor& dy, const GatheredRows& x, Run& run) const;

 private:
  View product_weight(const ParameterStore& store) const;
};

}  // namespace trireme
