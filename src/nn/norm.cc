#include "src/nn/norm.h"

namespace trireme {

void Norm::Kept::push(Saved& saved) const {
  saved.push(x);
  if (!mean.empty()) {
    saved.push(mean);
  }
  saved.push(rstd);
}

Norm::Kept Norm::pop(Saved& saved) const {
  Kept kept;
  kept.rstd = saved.pop();
  if (bias != kNoParameter) {
    kept.mean = saved.pop();
  }
  kept.x = saved.pop();
  return kept;
}

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
  (layer_norm ? run.kernels().layer_norm_forward : run.kernels().rms_norm_forward)(run.stream(),
                                                                                   norm);
}

}  // namespace

Norm::Result Norm::forward(Residual& stream, Run& run) const {
  Result result;
  result.y = Tensor(run.pool(), stream.x.shape(), stream.x.dtype());
  NormForward norm = arguments(stream.x.view(), result.y.view(), run);
  if (bias != kNoParameter) {
    result.kept.mean = Tensor(run.pool(), {norm.rows}, DType::f32);
  }
  result.kept.rstd = Tensor(run.pool(), {norm.rows}, DType::f32);
  norm.mean = result.kept.mean.view();
  norm.rstd = result.kept.rstd.view();
  if (!stream.delta.empty()) {
    norm.residual = stream.delta.view();
    norm.sum = stream.delta.view();
  }
  normalize(norm, bias != kNoParameter, run);
  if (!stream.delta.empty()) {
    stream.x = std::move(stream.delta);
    stream.delta = {};
  }
  result.kept.x = stream.x;
  return result;
}

Tensor Norm::again(const Kept& kept, Run& run) const {
  Tensor y(run.pool(), kept.x.shape(), kept.x.dtype());
  NormForward norm = arguments(kept.x.view(), y.view(), run);
  norm.mean = kept.mean.view();
  norm.rstd = kept.rstd.view();
  normalize(norm, bias != kNoParameter, run);
  return y;
}

NormBackward Norm::arguments(const Tensor& dy, const Tensor& dresidual, const Kept& kept,
                             const Run& run) const {
  NormBackward norm;
  norm.channels = run.parameters[weight].elements();
  norm.rows = kept.x.elements() / norm.channels;
  norm.dy = dy.view();
  norm.x = kept.x.view();
  norm.weight = run.parameters.compute(weight);
  norm.mean = kept.mean.view();
  norm.rstd = kept.rstd.view();
  norm.dresidual = dresidual.view();
  return norm;
}

// Starts to sum the gradients of weight and bias over the ranks, if these share the rows.
TensorGroup::Exchange Norm::start_sums(Run& run) const {
  if (!run.shares_rows()) {
    return 0;
  }
  const TensorGroup::Exchange sum = run.group->start_sum(run.gradients->gradient(weight));
  return bias == kNoParameter ? sum : run.group->start_sum(run.gradients->gradient(bias));
}

// The kernel computes all gradients at once. If those of weights are put off (run.later), the ones
// of weight and bias are kept in tensors of their own until then. Those of frozen ones are not
// used.
Tensor Norm::backward(const Tensor& dy, const Tensor& dresidual, const Kept& kept, Run& run) const {
  const bool layer_norm = bias != kNoParameter;
  NormBackward norm = arguments(dy, dresidual, kept, run);
  Tensor dx = dresidual.empty() ? dy : dresidual;
  Tensor dweight;
  Tensor dbias;
  const bool frozen = run.parameters[weight].frozen;
  if (run.later == nullptr && !frozen) {
    norm.dweight = run.gradients->gradient(weight);
    norm.dbias = layer_norm ? run.gradients->gradient(bias) : View{};
  } else {
    dx = run.later == nullptr ? dx : Tensor(run.pool(), dy.shape(), dy.dtype());
    dweight = Tensor(run.pool(), {norm.channels}, DType::f32);
    dbias = layer_norm ? Tensor(run.pool(), {norm.channels}, DType::f32) : Tensor();
    norm.dweight = dweight.view();
    norm.dbias = dbias.view();
  }
  norm.dx = dx.view();
  (layer_norm ? run.kernels().layer_norm_backward : run.kernels().rms_norm_backward)(run.stream(),
                                                                                     norm);
  if (frozen) {
    return dx;
  }
  TensorGroup::Exchange sums = dweight.empty() ? start_sums(run) : 0;
  run.weight_gradient([this, dweight, dbias, sums](Run& then) mutable {
    if (!dbias.empty()) {
      then.kernels().cast(then.stream(), then.gradients->gradient(bias), dbias.view());
    }
    if (!dweight.empty()) {
      then.kernels().cast(then.stream(), then.gradients->gradient(weight), dweight.view());
      sums = start_sums(then);
    }
    if (sums != 0) {
      then.group->finish(sums);
    }
    if (bias != kNoParameter) {
      then.gradients->ready(bias);
    }
    then.gradients->ready(weight);
  });
  return dx;
}

}  // namespace trireme
