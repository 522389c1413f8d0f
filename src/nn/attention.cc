#include "src/nn/attention.h"

#include <cmath>
#include <numbers>

#include "src/nn/key_value_cache.h"

namespace trireme {
namespace {

double stretched(double frequency, const RopeScaling& s) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double original = static_cast<double>(s.original_context);
  if (s.factor == 0 || wavelength < original / s.high_freq_factor) {
    return frequency;
  }
  if (wavelength > original / s.low_freq_factor) {
    return frequency / s.factor;
  }
  const double smooth =
      (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return frequency * ((1 - smooth) / s.factor + smooth);
}

}  // namespace

Tensor rope_frequencies(const ModelConfig& config, Pool& pool) {
  Tensor frequencies(pool, {config.head_dim / 2}, DType::f32);
  auto* f = as<float>(frequencies.view());
  for (std::int64_t j = 0; j < config.head_dim / 2; ++j) {
    const double power = -2.0 * static_cast<double>(j) / static_cast<double>(config.head_dim);
    f[j] = static_cast<float>(stretched(std::pow(config.rope_theta, power), config.rope_scaling));
  }
  return frequencies;
}

struct Attention::Span {
  std::int64_t batch = 0;
  std::int64_t time = 0;      // tokens of this pass
  std::int64_t first = 0;     // position of the first of them: kv_time = first + time
  std::int64_t capacity = 0;  // rows from one batch member to the next
  View all;                   // T [B, capacity, width]
  View fresh;                 // the rows of this pass
};

Attention::Attention(const ModelConfig& config, std::int64_t layer, const Linear& project_in,
                     const Linear& project_out, Tensor frequencies)
    : layer_(layer),
      heads_(config.heads),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      width_(config.qkv_width()),
      project_in_(project_in),
      project_out_(project_out),
      frequencies_(std::move(frequencies)) {}

Attention::Span Attention::training_span(const Tensor& x, const Tensor& packed) const {
  return {x.shape()[0], x.shape()[1], 0, x.shape()[1], packed.view(), packed.view()};
}

Attention::Span Attention::cached_span(const Tensor& x, const Run& run) const {
  const KeyValueCache& cache = *run.cache;
  const std::int64_t time = x.shape()[1];
  const View all = cache.rows(layer_);
  return {1,
          time,
          cache.length(),
          cache.capacity(),
          all,
          all.slice(cache.length() * width_, time * width_)};
}

// Queries and keys lie side by side, so that one call turns both.
void Attention::rotate(const Span& span, const View& rows, bool backward, Run& run) const {
  if (frequencies_.empty()) {
    return;
  }
  Rope rope;
  rope.batch = span.batch;
  rope.time = span.time;
  rope.heads = heads_ + kv_heads_;
  rope.head_dim = head_dim_;
  rope.first_position = span.first;
  rope.stride = width_;
  rope.x = rows;
  rope.inverse_frequency = frequencies_.view();
  rope.backward = backward;
  run.kernels.rope(run.stream, rope);
}

namespace {

// From element `first` on.
View tail(const View& view, std::int64_t first) { return view.slice(first, view.count - first); }

}  // namespace

AttentionForward Attention::arguments(const Span& span, const View& out, const View& lse) const {
  const std::int64_t keys = heads_ * head_dim_;
  const std::int64_t values = keys + kv_heads_ * head_dim_;
  AttentionForward call;
  call.batch = span.batch;
  call.time = span.time;
  call.kv_time = span.first + span.time;
  call.heads = heads_;
  call.kv_heads = kv_heads_;
  call.head_dim = head_dim_;
  call.q = span.fresh;
  call.k = tail(span.all, keys);
  call.v = tail(span.all, values);
  call.q_stride = width_;
  call.kv_stride = width_;
  call.kv_batch_rows = span.capacity;
  call.out = out;
  call.lse = lse;
  return call;
}

Tensor Attention::forward(const Tensor& x, Saved& saved, Run& run) const {
  const std::int64_t batch = x.shape()[0];
  const std::int64_t time = x.shape()[1];
  Tensor packed;
  if (run.cache == nullptr) {
    packed = Tensor(run.pool, {batch, time, width_}, x.dtype());
  }
  const Span span = run.cache == nullptr ? training_span(x, packed) : cached_span(x, run);
  project_in_.forward(x.view(), span.fresh, run);
  rotate(span, span.fresh, false, run);

  const Tensor out(run.pool, {batch, time, heads_ * head_dim_}, x.dtype());
  Tensor lse;
  if (saved.keeps()) {
    lse = Tensor(run.pool, {batch, heads_, time}, DType::f32);
  }
  run.kernels.attention_forward(run.stream, arguments(span, out.view(), lse.view()));

  Tensor y(run.pool, {batch, time, project_out_.out}, x.dtype());
  project_out_.forward(out.view(), y.view(), run);
  for (const Tensor& tensor : {x, packed, out, lse}) {
    saved.push(tensor);
  }
  return y;
}

Tensor Attention::backward(const Tensor& dy, Saved& saved, Run& run) const {
  const Tensor lse = saved.pop();
  const Tensor out = saved.pop();
  const Tensor packed = saved.pop();
  Tensor x = saved.pop();
  project_out_.backward_weight(dy.view(), out.view(), run);
  project_out_.announce(run);

  const Tensor dpacked(run.pool, packed.shape(), packed.dtype());
  const Span span = training_span(x, packed);
  {
    const Tensor dout(run.pool, out.shape(), out.dtype());
    project_out_.backward_input(dy.view(), dout.view(), run);
    AttentionBackward call;
    call.forward = arguments(span, out.view(), lse.view());
    call.dout = dout.view();
    call.dq = dpacked.view();
    call.dk = tail(dpacked.view(), heads_ * head_dim_);
    call.dv = tail(dpacked.view(), (heads_ + kv_heads_) * head_dim_);
    run.kernels.attention_backward(run.stream, call);
  }
  rotate(span, dpacked.view(), true, run);

  project_in_.backward_weight(dpacked.view(), x.view(), run);
  project_in_.announce(run);
  // x has served its last purpose: its place is taken by its gradient.
  project_in_.backward_input(dpacked.view(), x.view(), run);
  return x;
}

}  // namespace trireme
