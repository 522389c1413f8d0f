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
    const Tensor normalized = norm_.forward(stream, saved, run);
    stream.delta = branch_->forward(normalized, saved, run);
  }
  if (drops(dropout_, run)) {
    apply_dropout(dropout_, stream.delta, stream.delta, run);
  }
  return stream;
}

void ResidualLayer::backward(const Tensor& d, Saved& saved, Run& run) const {
  Tensor dy = d;
  if (drops(dropout_, run)) {
    dy = Tensor(run.pool, d.shape(), d.dtype());
    apply_dropout(dropout_, d, dy, run);
  }
  const Tensor dnormalized = branch_->backward(dy, saved, run);
  norm_.backward(dnormalized.view(), d.view(), d.view(), saved, run);
}

}  // namespace trireme
