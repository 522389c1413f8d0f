#include "src/nn/mlp.h"

namespace trireme {
namespace {

// Allocates [B,T,channels] for an x of [B,T,...].
Tensor like(const Tensor& x, std::int64_t channels, Run& run) {
  return {run.pool(), {x.shape()[0], x.shape()[1], channels}, x.dtype()};
}
Tensor shared_like(const Tensor& x, std::int64_t channels, Run& run) {
  return {run.shared_pool(), {x.shape()[0], x.shape()[1], channels}, x.dtype()};
}

}  // namespace

Tensor GeluMlp::forward(const Tensor& x, Saved& saved, Run& run) const {
  const Tensor before = like(x, expand_.out, run);
  const Tensor after = like(x, expand_.out, run);
  expand_.forward(x.view(), after.view(), run, before.view());
  Tensor y = shared_like(x, project_.out, run);
  project_.forward(after.view(), y.view(), run);
  saved.push(before);
  if (!lean_) {
    saved.push(after);
  }
  return y;
}

// A tensor that is not read again is overwritten by its own gradient.
BranchGradient GeluMlp::backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                                 Run& run) const {
  Tensor after = lean_ ? Tensor() : saved.pop();
  const Tensor before = saved.pop();
  if (lean_) {
    after = like(dy, expand_.out, run);
    run.kernels().gelu_forward(run.stream(), after.view(), before.view());
  }
  run.weight_gradient([this, dy, after](Run& then) {
    project_.backward_weight(dy.view(), after.view(), then);
    project_.announce(then);
  });
  const Tensor dbefore = run.puts_off_weights() ? like(dy, expand_.out, run) : std::move(after);
  project_.backward_input(dy.view(), dbefore.view(), run, before.view());
  return expand_.backward_entry(dbefore, x, run);
}

Tensor SwigluMlp::forward(const Tensor& x, Saved& saved, Run& run) const {
  const Tensor gate = like(x, gate_.out, run);
  const Tensor up = like(x, up_.out, run);
  const Tensor product = like(x, gate_.out, run);
  gate_.forward(x.view(), gate.view(), run);
  up_.forward(x.view(), up.view(), run);
  run.kernels().swiglu_forward(run.stream(), product.view(), gate.view(), up.view());
  Tensor y = shared_like(x, down_.out, run);
  down_.forward(product.view(), y.view(), run);
  saved.push(gate);
  saved.push(up);
  if (!lean_) {
    saved.push(product);
  }
  return y;
}

BranchGradient SwigluMlp::backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                                   Run& run) const {
  Tensor product = lean_ ? Tensor() : saved.pop();
  const Tensor up = saved.pop();
  const Tensor gate = saved.pop();
  if (lean_) {
    product = like(dy, gate_.out, run);
    run.kernels().swiglu_forward(run.stream(), product.view(), gate.view(), up.view());
  }
  run.weight_gradient([this, dy, product](Run& then) {
    down_.backward_weight(dy.view(), product.view(), then);
    down_.announce(then);
  });
  const Tensor dproduct = run.puts_off_weights() ? like(dy, gate_.out, run) : std::move(product);
  down_.backward_input(dy.view(), dproduct.view(), run);

  const Tensor dgate = like(dy, gate_.out, run);
  const Tensor dup = like(dy, up_.out, run);
  run.kernels().swiglu_backward(run.stream(), dgate.view(), dup.view(), dproduct.view(),
                                gate.view(), up.view());
  BranchGradient result;
  const bool in_place = run.alone() && !run.puts_off_weights();
  if (!in_place) {
    result.dx = input_gradient(dgate, dup, shared_like(dy, gate_.in, run), run);
    result.sum = start_row_sum(result.dx, run);
  }
  run.weight_gradient([this, dup, x](Run& then) {
    up_.backward_weight(dup.view(), x.whole(then).view(), then);
    up_.announce(then);
  });
  run.weight_gradient([this, dgate, x](Run& then) {
    gate_.backward_weight(dgate.view(), x.whole(then).view(), then);
    gate_.announce(then);
  });
  if (in_place) {
    result.dx = input_gradient(dgate, dup, x.whole(run), run);
  }
  return result;
}

// dx = dgate Wgate^T + dup Wup^T, summed in f32 and stored in `place` [B,T,C], which it returns.
Tensor SwigluMlp::input_gradient(const Tensor& dgate, const Tensor& dup, const Tensor& place,
                                 Run& run) const {
  const bool narrow = place.dtype() != DType::f32;
  const Tensor sum = narrow ? Tensor(run.pool(), place.shape(), DType::f32) : place;
  gate_.backward_input(dgate.view(), sum.view(), run);
  up_.backward_input_add(dup.view(), sum.view(), run);
  if (narrow) {
    run.kernels().cast(run.stream(), place.view(), sum.view());
  }
  return place;
}

}  // namespace trireme
