#include "src/nn/linear.h"

#include "src/nn/packed_weights.h"

namespace trireme {

// Returns all parameters of W as one matrix, which is possible because they are joined.
View Linear::product_weight(const ParameterStore& store) const {
  return store.compute(weight, weights);
}

// Lets the product take its operands in 8 bits, if the run does so.
void Linear::round_operands(Matmul& product, const Run& run, Role a, Role b) const {
  if (run.fp8 != nullptr) {
    product.fp8_a = run.fp8->operand(weight, a);
    product.fp8_b = run.fp8->operand(weight, b);
  }
}

void Linear::forward(const ConstView& x, const View& y, Run& run, const View& before) const {
  const bool is_packed = run.packed != nullptr && run.packed->has(weight);
  const bool fused = !before.empty() && adapters.empty() && !is_packed;
  const View sum = before.empty() || fused ? y : before;
  const ConstView added = bias != kNoParameter && adds_bias
                              ? ConstView(run.parameters.compute(bias, biases))
                              : ConstView();
  if (is_packed) {
    run.packed->multiply(weight, x, added, sum, run);
  } else {
    Matmul product;
    product.m = x.count / in;
    product.n = out;
    product.k = in;
    product.a = x;
    product.b = product_weight(run.parameters);
    product.transpose_b = transposed;
    product.c = sum;
    product.bias = added;
    round_operands(product, run, Role::input, Role::weight);
    if (fused) {
      product.aux = before;
      product.epilogue = Epilogue::gelu;
    }
    run.kernels().matmul(run.stream(), product);
  }
  if (!adapters.empty()) {
    adapters.add_forward(x, sum, run);
  }
  if (!before.empty() && !fused) {
    run.kernels().gelu_forward(run.stream(), y, before);
  }
}

void Linear::backward_weight(const ConstView& dy, const ConstView& x, Run& run,
                             bool accumulate) const {
  if (!adapters.empty()) {
    adapters.backward_weight(dy, x, run);
  }
  if (!is_trained(run)) {
    return;
  }
  Matmul product;
  product.m = transposed ? out : in;
  product.n = transposed ? in : out;
  product.k = x.count / in;
  product.a = transposed ? dy : x;
  product.b = transposed ? x : dy;
  product.transpose_a = true;
  product.c = run.gradients->gradient(weight, weights);
  product.accumulate = accumulate;
  round_operands(product, run, transposed ? Role::gradient : Role::input,
                 transposed ? Role::input : Role::gradient);
  run.kernels().matmul(run.stream(), product);
  if (bias != kNoParameter) {
    run.kernels().column_sum(run.stream(),
                             {product.k, out, dy, run.gradients->gradient(bias, biases)});
  }
}

namespace {

// dx = dy W^T, before any epilogue.
Matmul input_product(const Linear& linear, const ConstView& dy, const ConstView& w,
                     const View& dx) {
  Matmul product;
  product.m = dy.count / linear.out;
  product.n = linear.in;
  product.k = linear.out;
  product.a = dy;
  product.b = w;
  product.transpose_b = !linear.transposed;
  product.c = dx;
  return product;
}

}  // namespace

void Linear::backward_input(const ConstView& dy, const View& dx, Run& run,
                            const View& before) const {
  Matmul product = input_product(*this, dy, product_weight(run.parameters), dx);
  round_operands(product, run, Role::gradient, Role::weight);
  if (!before.empty() && adapters.empty()) {
    product.aux = before;
    product.epilogue = Epilogue::gelu_backward;
  }
  run.kernels().matmul(run.stream(), product);
  if (adapters.empty()) {
    return;
  }
  adapters.add_backward_input(dy, dx, run);
  if (!before.empty()) {
    run.kernels().gelu_backward(run.stream(), dx, dx, before);
  }
}

void Linear::backward_input_add(const ConstView& dy, const View& dx, Run& run) const {
  Matmul product = input_product(*this, dy, product_weight(run.parameters), dx);
  round_operands(product, run, Role::gradient, Role::weight);
  product.accumulate = true;
  run.kernels().matmul(run.stream(), product);
  if (!adapters.empty()) {
    adapters.add_backward_input(dy, dx, run);
  }
}

void Linear::announce(Run& run) const {
  adapters.announce(run);
  if (!is_trained(run)) {
    return;
  }
  for (int i = bias == kNoParameter ? -1 : biases - 1; i >= 0; --i) {
    run.gradients->ready(bias + i);
  }
  for (int i = weights - 1; i >= 0; --i) {
    run.gradients->ready(weight + i);
  }
}

BranchGradient Linear::backward_entry(const Tensor& dy, const GatheredRows& x, Run& run) const {
  BranchGradient result;
  const bool in_place = run.alone() && !run.puts_off_weights();
  if (!in_place) {
    result.dx = Tensor(run.shared_pool(), {dy.shape()[0], dy.shape()[1], in}, dy.dtype());
    backward_input(dy.view(), result.dx.view(), run);
    result.sum = start_row_sum(result.dx, run);
  }
  run.weight_gradient([this, dy, x](Run& then) {
    backward_weight(dy.view(), x.whole(then).view(), then);
    announce(then);
  });
  if (in_place) {
    result.dx = x.whole(run);
    backward_input(dy.view(), result.dx.view(), run);
  }
  return result;
}

}  // namespace trireme
