#include "src/nn/norm.h"

namespace trireme {

NormForward Norm::arguments(const ConstView& x, const View& y, const Run& run) const {
  NormForward norm;
  norm.channels = run.parameters[weight].elements();
  norm.rows = x.count / norm.channels;
  norm.epsilon = epsilon;
  norm.x = x;
  norm.weight = run.parameters.compute(weight);
  if (bias != kNoParameter) {
    norm.bias = run.parameters.compute(bias);
  }
  norm.y = y;
  return norm;
}

namespace {

void normalize(const NormForward& norm, bool layer_norm, Run& run) {
  (layer_norm ? run.kernels.layer_norm_forward : run.kernels.rms_norm_forward)(run.stream, norm);
}

}  // namespace

Tensor Norm::forward(Residual& stream, Saved& saved, Run& run) const {
  Tensor y(run.pool, stream.x.shape(), stream.x.dtype());
  NormForward norm = arguments(stream.x.view(), y.view(), run);
  Tensor mean;
  if (bias != kNoParameter) {
    mean = Tensor(run.pool, {norm.rows}, DType::f32);
    norm.mean = mean.view();
  }
  const Tensor rstd(run.pool, {norm.rows}, DType::f32);
  norm.rstd = rstd.view();
  if (!stream.delta.empty()) {
    norm.residual = stream.delta.view();
    norm.sum = stream.delta.view();
  }
  normalize(norm, bias != kNoParameter, run);
  if (!stream.delta.empty()) {
    stream.x = std::move(stream.delta);
    stream.delta = {};
  }
  saved.push(stream.x);
  if (!mean.empty()) {
    saved.push(mean);
  }
  saved.push(rstd);
  return y;
}

void Norm::backward(const View& dy, const ConstView& dresidual, const View& dx, Saved& saved,
                    Run& run) const {
  const ParameterStore& store = run.parameters;
  const bool layer_norm = bias != kNoParameter;
  const Tensor rstd = saved.pop();
  const Tensor mean = layer_norm ? saved.pop() : Tensor();
  const Tensor x = saved.pop();
  NormBackward norm;
  norm.channels = store[weight].elements();
  norm.rows = x.elements() / norm.channels;
  norm.dy = dy;
  norm.x = x.view();
  norm.weight = store.compute(weight);
  norm.mean = mean.view();
  norm.rstd = rstd.view();
  norm.dresidual = dresidual;
  norm.dx = dx;
  norm.dweight = store.gradient(weight);
  if (layer_norm) {
    norm.dbias = store.gradient(bias);
    run.kernels.layer_norm_backward(run.stream, norm);
  } else {
    run.kernels.rms_norm_backward(run.stream, norm);
  }
  if (run.gradient_ready) {
    if (layer_norm) {
      run.gradient_ready(bias);
    }
    run.gradient_ready(weight);
  }
}

}  // namespace trireme
