#include "src/nn/residual_layer.h"

namespace trireme {

void apply_dropout(const ResidualDropout& dropout, const Tensor& x, const Tensor& y, Run& run) {
  Dropout call;
  call.batch = run.batch;
  call.elements_per_sample = run.time * x.shape()[2];
  call.first_element = run.shares_rows() ? run.group->rank() * x.elements() : 0;
  call.first_sample = run.first_sample;
  call.seed = run.dropout.seed;
  call.step = run.dropout.step;
  call.position = run.position();
  call.site = dropout.site;
  call.probability = dropout.probability;
  call.x = x.view();
  call.y = y.view();
  run.kernels().dropout(run.stream(), call);
}

Residual ResidualLayer::forward(Residual stream, Saved& saved, Run& run) const {
  {
    const Norm::Result normalized = norm_.forward(stream, run);
    stream.delta = branch_->forward(gather_rows(normalized.y, run), saved, run);
    if (!lean_) {
      saved.push(normalized.y);
    }
    normalized.kept.push(saved);
  }
  stream.delta = sum_rows(stream.delta, run);
  if (drops(dropout_, run)) {
    apply_dropout(dropout_, stream.delta, stream.delta, run);
  }
  return stream;
}

Tensor ResidualLayer::backward(Tensor d, Saved& saved, Run& run) const {
  Tensor dy = d;
  if (drops(dropout_, run)) {
    dy = Tensor(run.pool(), d.shape(), d.dtype());
    apply_dropout(dropout_, d, dy, run);
  }
  const Norm::Kept kept = norm_.pop(saved);
  BranchGradient gradient;
  {
    const GatheredRows all_dy(dy, run);
    all_dy.start(run);
    const GatheredRows normalized(lean_ ? norm_.again(kept, run) : saved.pop(), run);
    normalized.start_for_weights(run);
    run.work_off();
    gradient = branch_->backward(all_dy.whole(run), normalized, saved, run);
  }
  return norm_.backward(finish_row_sum(gradient.dx, gradient.sum, run), d, kept, run);
}

}  // namespace trireme
