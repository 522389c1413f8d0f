#include "src/nn/linear.h"

namespace trireme {

// All weights of W at once: they lie joined.
View Linear::part(const View& flat, const ParameterStore& store) const {
  return flat.slice(store[weight].offset, in * out);
}

void Linear::forward(const ConstView& x, const View& y, Run& run, const View& before) const {
  const ParameterStore& store = run.parameters;
  Matmul product;
  product.m = x.count / in;
  product.n = out;
  product.k = in;
  product.a = x;
  product.b = part(store.computes(), store);
  product.transpose_b = transposed;
  product.c = y;
  if (bias != kNoParameter) {
    product.bias = store.compute(bias);
  }
  if (!before.empty()) {
    product.aux = before;
    product.epilogue = Epilogue::gelu;
  }
  run.kernels.matmul(run.stream, product);
}

void Linear::backward_weight(const ConstView& dy, const ConstView& x, Run& run,
                             bool accumulate) const {
  const ParameterStore& store = run.parameters;
  Matmul product;
  product.m = transposed ? out : in;
  product.n = transposed ? in : out;
  product.k = x.count / in;
  product.a = transposed ? dy : x;
  product.b = transposed ? x : dy;
  product.transpose_a = true;
  product.c = part(store.gradients(), store);
  product.accumulate = accumulate;
  run.kernels.matmul(run.stream, product);
  if (bias != kNoParameter) {
    run.kernels.column_sum(run.stream, {product.k, out, dy, store.gradient(bias)});
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
  Matmul product = input_product(*this, dy, part(run.parameters.computes(), run.parameters), dx);
  if (!before.empty()) {
    product.aux = before;
    product.epilogue = Epilogue::gelu_backward;
  }
  run.kernels.matmul(run.stream, product);
}

void Linear::backward_input_add(const ConstView& dy, const View& dx, Run& run) const {
  Matmul product = input_product(*this, dy, part(run.parameters.computes(), run.parameters), dx);
  product.accumulate = true;
  run.kernels.matmul(run.stream, product);
}

void Linear::announce(Run& run) const {
  if (!run.gradient_ready) {
    return;
  }
  if (bias != kNoParameter) {
    run.gradient_ready(bias);
  }
  for (int i = weights - 1; i >= 0; --i) {
    run.gradient_ready(weight + i);
  }
}

}  // namespace trireme
