// Linear computes y = x W + bias and its gradients, over the rows of x. W is stored [in,out]
// (GPT-2's Conv1D) or, with `transposed`, [out,in]. Several parameters that are joined in the store
// (queries, keys, values) can make up one W. In a tensor-parallel group, W is this rank's part of
// the columns or rows of the whole matrix. Adapters can add to the product of a frozen W. Holds
// parameter ids and sizes; has no state.
#pragma once

#include "src/nn/adapters.h"
#include "src/nn/fp8_products.h"
#include "src/nn/layer.h"

namespace trireme {

inline constexpr ParameterId kNoParameter = -1;

struct Linear {
  ParameterId weight = kNoParameter;
  int weights = 1;  // number of parameters that make up W, from `weight` on; 1 unless transposed
  ParameterId bias = kNoParameter;
  int biases = 1;  // number of parameters that make up the bias, from `bias` on
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool transposed = false;
  bool adds_bias = true;  // false: another rank of the group adds the bias to the sum
  Adapters adapters = {};

  // x T [R,in] -> y T or f32 [R,out]. If `before` T [R,out] is given: before = x W + bias, y =
  // gelu(before).
  void forward(const ConstView& x, const View& y, Run& run, const View& before = {}) const;
  // Computes the gradients of W and bias, unless they are frozen, and of the adapters, from dy T
  // [R,out] and x T [R,in]. With `accumulate`, that of W is added to the old one; the others are
  // always overwritten.
  void backward_weight(const ConstView& dy, const ConstView& x, Run& run,
                       bool accumulate = false) const;
  // dx = dy W^T, T or f32 [R,in]. If `before` T [R,in] is given: dx = dy W^T gelu'(before).
  void backward_input(const ConstView& dy, const View& dx, Run& run, const View& before = {}) const;
  // dx += dy W^T, dx f32 [R,in].
  void backward_input_add(const ConstView& dy, const View& dx, Run& run) const;
  // Announces to run.gradients that the gradients of adapters, bias and W are final.
  void announce(Run& run) const;
  // Computes the last part of a branch's backward: the gradients of W and bias, and that of x,
  // which may overwrite x. In a group, the sum of dx is started first and runs while W's gradient
  // is computed.
  BranchGradient backward_entry(const Tensor& dy, const GatheredRows& x, Run& run) const;
  bool is_trained(const Run& run) const { return !run.parameters[weight].frozen; }

 private:
  using Role = Fp8Products::Role;
  void round_operands(Matmul& product, const Run& run, Role a, Role b) const;
  View product_weight(const ParameterStore& store) const;
};

}  // namespace trireme
