#include "src/nn/adapters.h"

namespace trireme {
namespace {

// Keeps the matrices of adapters in memory for its lifetime: gradients of weights can be computed
// long after their layer.
class AdaptersInMemory {
 public:
  AdaptersInMemory(const Adapters& adapters, const Run& run)
      : residence_(run.residence), first_(adapters.a), end_(adapters.slots.back().b + 1) {
    if (residence_ != nullptr) {
      residence_->need(first_, end_);
    }
  }
  ~AdaptersInMemory() {
    if (residence_ != nullptr) {
      residence_->release(first_, end_);
    }
  }
  AdaptersInMemory(const AdaptersInMemory&) = delete;
  AdaptersInMemory& operator=(const AdaptersInMemory&) = delete;

 private:
  ParameterResidence* residence_;
  ParameterId first_;
  ParameterId end_;
};

View rest_of(const View& view, std::int64_t first) { return view.slice(first, view.count - first); }
ConstView rest_of(const ConstView& view, std::int64_t first) {
  return view.slice(first, view.count - first);
}

}  // namespace

// Multiplies f32 sums [R, slots r] by the scale and rounds them.
Tensor Adapters::narrowed(const Tensor& sums, DType dtype, Run& run) const {
  run.kernels().combine(run.stream(), {.result = sums.view(), .a = scale, .x = sums.view()});
  if (dtype == DType::f32) {
    return sums;
  }
  Tensor rounded(run.pool(), sums.shape(), dtype);
  run.kernels().cast(run.stream(), rounded.view(), sums.view());
  return rounded;
}

// Returns scale x A^T of all slots, T [R, slots r].
Tensor Adapters::project_down(const ConstView& x, Run& run) const {
  const Tensor sums(run.pool(), {x.count / in, width()}, DType::f32);
  Matmul product;
  product.m = x.count / in;
  product.n = width();
  product.k = in;
  product.a = x;
  product.b = run.parameters.compute(a, static_cast<int>(slots.size()));
  product.transpose_b = true;
  product.c = sums.view();
  run.kernels().matmul(run.stream(), product);
  return narrowed(sums, x.dtype, run);
}

// Returns scale dy B of all slots, T [R, slots r].
Tensor Adapters::project_back(const ConstView& dy, Run& run) const {
  const Tensor sums(run.pool(), {dy.count / out, width()}, DType::f32);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    Matmul product;
    product.m = dy.count / out;
    product.n = rank;
    product.k = slot.out;
    product.a = rest_of(dy, slot.first);
    product.pitch_a = out;
    product.b = run.parameters.compute(slot.b);
    product.transpose_b = !transposed;
    product.c = rest_of(sums.view(), static_cast<std::int64_t>(i) * rank);
    product.pitch_c = width();
    run.kernels().matmul(run.stream(), product);
  }
  return narrowed(sums, dy.dtype, run);
}

void Adapters::add_forward(const ConstView& x, const View& y, Run& run) const {
  const Tensor down = project_down(x, run);
  const bool narrow = y.dtype != DType::f32;
  const Tensor sum = narrow ? Tensor(run.pool(), {y.count / out, out}, y.dtype) : Tensor();
  std::int64_t columns = 0;
  for (const Slot& slot : slots) {
    columns += slot.out;
  }
  if (narrow && columns < out) {
    run.kernels().fill(run.stream(), sum.view(), 0);
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    Matmul product;
    product.m = y.count / out;
    product.n = slot.out;
    product.k = rank;
    product.a = rest_of(down.view(), static_cast<std::int64_t>(i) * rank);
    product.pitch_a = width();
    product.b = run.parameters.compute(slot.b);
    product.transpose_b = transposed;
    product.c = rest_of(narrow ? sum.view() : y, slot.first);
    product.pitch_c = out;
    product.accumulate = !narrow;
    run.kernels().matmul(run.stream(), product);
  }
  if (narrow) {
    run.kernels().add(run.stream(), y, sum.view());
  }
}

void Adapters::add_backward_input(const ConstView& dy, const View& dx, Run& run) const {
  const Tensor back = project_back(dy, run);
  const bool narrow = dx.dtype != DType::f32;
  const Tensor sum = narrow ? Tensor(run.pool(), {dx.count / in, in}, dx.dtype) : Tensor();
  Matmul product;
  product.m = dx.count / in;
  product.n = in;
  product.k = width();
  product.a = back.view();
  product.b = run.parameters.compute(a, static_cast<int>(slots.size()));
  product.c = narrow ? sum.view() : dx;
  product.accumulate = !narrow;
  run.kernels().matmul(run.stream(), product);
  if (narrow) {
    run.kernels().add(run.stream(), dx, sum.view());
  }
}

void Adapters::backward_weight(const ConstView& dy, const ConstView& x, Run& run) const {
  const AdaptersInMemory in_memory(*this, run);
  const std::int64_t rows = x.count / in;
  {
    const Tensor back = project_back(dy, run);
    Matmul product;
    product.m = width();
    product.n = in;
    product.k = rows;
    product.a = back.view();
    product.transpose_a = true;
    product.b = x;
    product.c = run.gradients->gradient(a, static_cast<int>(slots.size()));
    run.kernels().matmul(run.stream(), product);
  }
  const Tensor down = project_down(x, run);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    const ConstView dy_of_slot = rest_of(dy, slot.first);
    const ConstView down_of_slot = rest_of(down.view(), static_cast<std::int64_t>(i) * rank);
    Matmul product;
    product.m = transposed ? slot.out : rank;
    product.n = transposed ? rank : slot.out;
    product.k = rows;
    product.a = transposed ? dy_of_slot : down_of_slot;
    product.pitch_a = transposed ? out : width();
    product.transpose_a = true;
    product.b = transposed ? down_of_slot : dy_of_slot;
    product.pitch_b = transposed ? width() : out;
    product.c = run.gradients->gradient(slot.b);
    run.kernels().matmul(run.stream(), product);
  }
  if (run.alone()) {
    return;
  }
  if (divides_out) {
    run.group->sum(run.gradients->gradient(a, static_cast<int>(slots.size())));
    return;
  }
  for (const Slot& slot : slots) {
    run.group->sum(run.gradients->gradient(slot.b));
  }
}

void Adapters::announce(Run& run) const {
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    run.gradients->ready(slot->b);
  }
  for (int i = static_cast<int>(slots.size()) - 1; i >= 0; --i) {
    run.gradients->ready(a + i);
  }
}

}  // namespace trireme
