#include "src/nn/residual_layer.h"

namespace trireme {

void apply_dropout(const ResidualDropout& dropout, const Tensor& x, const Tensor& y, Run& run) {
  Dropout call;
  call.batch = x.shape()[0];
  call.elements_a_sample = x.elements() / call.batch;
  call.first_sample = run.first_sample;
  call.seed = run.dropout.seed;
  call.step = run.dropout.step;
  call.site = dropout.site;
  call.probability = dropout.probability;
  call.x = x.view();
  call.y = y.view();
  run.kernels.dropout(run.stream, call);
}

Residual ResidualLayer::forward(Residual stream, Saved& saved, Run& run) const {
  {
    const Norm::Result normalized = norm_.forward(stream, run);
    stream.delta = branch_->forward(normalized.y, saved, run);
    if (!lean_) {
      saved.push(normalized.y);
    }
    normalized.kept.push(saved);
  }
  if (!run.alone()) {
    run.group->sum(stream.delta.view());
  }
  if (drops(dropout_, run)) {
    apply_dropout(dropout_, stream.delta, stream.delta, run);
  }
  return stream;
}

Tensor ResidualLayer::backward(Tensor d, Saved& saved, Run& run) const {
  Tensor dy = d;
  if (drops(dropout_, run)) {
    dy = Tensor(run.pool, d.shape(), d.dtype());
    apply_dropout(dropout_, d, dy, run);
  }
  const Norm::Kept kept = norm_.pop(saved);
  Tensor dnormalized;
  {
    Tensor normalized = lean_ ? norm_.again(kept, run) : saved.pop();
    dnormalized = branch_->backward(dy, std::move(normalized), saved, run);
  }
  if (!run.alone()) {
    run.group->finish();
  }
  return norm_.backward(dnormalized, d, kept, run);
}

}  // namespace trireme
