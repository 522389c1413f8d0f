#include "src/nn/mlp.h"

namespace trireme {
namespace {

// [B,T,channels] beside x [B,T,...].
Tensor like(const Tensor& x, std::int64_t channels, Run& run) {
  return {run.pool, {x.shape()[0], x.shape()[1], channels}, x.dtype()};
}

}  // namespace

Tensor GeluMlp::forward(const Tensor& x, Saved& saved, Run& run) const {
  const Tensor before = like(x, expand_.out, run);
  const Tensor after = like(x, expand_.out, run);
  expand_.forward(x.view(), after.view(), run, before.view());
  Tensor y = like(x, project_.out, run);
  project_.forward(after.view(), y.view(), run);
  for (const Tensor& tensor : {x, before, after}) {
    saved.push(tensor);
  }
  return y;
}

// Each tensor that has served its last purpose gives its place to its own gradient.
Tensor GeluMlp::backward(const Tensor& dy, Saved& saved, Run& run) const {
  const Tensor after = saved.pop();
  const Tensor before = saved.pop();
  Tensor x = saved.pop();
  project_.backward_weight(dy.view(), after.view(), run);
  project_.announce(run);
  const Tensor& dbefore = after;
  project_.backward_input(dy.view(), dbefore.view(), run, before.view());
  expand_.backward_weight(dbefore.view(), x.view(), run);
  expand_.announce(run);
  expand_.backward_input(dbefore.view(), x.view(), run);
  return x;
}

Tensor SwigluMlp::forward(const Tensor& x, Saved& saved, Run& run) const {
  const Tensor gate = like(x, gate_.out, run);
  const Tensor up = like(x, up_.out, run);
  const Tensor product = like(x, gate_.out, run);
  gate_.forward(x.view(), gate.view(), run);
  up_.forward(x.view(), up.view(), run);
  run.kernels.swiglu_forward(run.stream, product.view(), gate.view(), up.view());
  Tensor y = like(x, down_.out, run);
  down_.forward(product.view(), y.view(), run);
  for (const Tensor& tensor : {x, gate, up, product}) {
    saved.push(tensor);
  }
  return y;
}

Tensor SwigluMlp::backward(const Tensor& dy, Saved& saved, Run& run) const {
  const Tensor product = saved.pop();
  const Tensor up = saved.pop();
  const Tensor gate = saved.pop();
  const Tensor x = saved.pop();
  down_.backward_weight(dy.view(), product.view(), run);
  down_.announce(run);
  const Tensor& dproduct = product;
  down_.backward_input(dy.view(), dproduct.view(), run);

  const Tensor dgate = like(x, gate_.out, run);
  const Tensor dup = like(x, up_.out, run);
  run.kernels.swiglu_backward(run.stream, dgate.view(), dup.view(), dproduct.view(), gate.view(),
                              up.view());
  up_.backward_weight(dup.view(), x.view(), run);
  up_.announce(run);
  gate_.backward_weight(dgate.view(), x.view(), run);
  gate_.announce(run);
  return input_gradient(dgate, dup, x, run);
}

// The sum of two products, in f32, then in x's type and place.
Tensor SwigluMlp::input_gradient(const Tensor& dgate, const Tensor& dup, const Tensor& x,
                                 Run& run) const {
  const bool narrow = x.dtype() != DType::f32;
  const Tensor sum = narrow ? Tensor(run.pool, x.shape(), DType::f32) : x;
  gate_.backward_input(dgate.view(), sum.view(), run);
  up_.backward_input_add(dup.view(), sum.view(), run);
  if (narrow) {
    run.kernels.cast(run.stream, x.view(), sum.view());
  }
  return x;
}

}  // namespace trireme
