#include "src/nn/attention.h"

#include <cmath>
#include <numbers>

#include "src/base/check.h"
#include "src/nn/alibi.h"
#include "src/nn/key_value_cache.h"

namespace trireme {
namespace {

// Stretches one rotary frequency as Llama 3 does: long wavelengths are divided by s.factor, short
// ones stay, and those between are interpolated.
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

Tensor rope_frequencies(const ModelConfig& config, DeviceContext& context) {
  Tensor frequencies(context.state(), {config.head_dim / 2}, DType::f32);
  context.write<float>(frequencies.view(), [&](float* f) {
    for (std::int64_t j = 0; j < config.head_dim / 2; ++j) {
      const double power = -2.0 * static_cast<double>(j) / static_cast<double>(config.head_dim);
      f[j] = static_cast<float>(stretched(std::pow(config.rope_theta, power), config.rope_scaling));
    }
  });
  return frequencies;
}

Tensor alibi_slopes(const ModelConfig& config, std::int64_t first, std::int64_t count,
                    DeviceContext& context) {
  Tensor slopes(context.state(), {count}, DType::f32);
  context.write<float>(slopes.view(), [&](float* s) {
    for (std::int64_t i = 0; i < count; ++i) {
      s[i] = alibi_slope(first + i, config.heads);
    }
  });
  return slopes;
}

struct Attention::Span {
  std::int64_t batch = 0;
  std::int64_t time = 0;      // tokens in this pass
  std::int64_t first = 0;     // position of the first of these tokens; kv_time = first + time
  std::int64_t capacity = 0;  // rows from one batch member to the next
  View all;                   // T [B, capacity, width]
  View fresh;                 // the rows of this pass; with a cache, only the new ones
  std::int64_t token = 0;     // of a part: its first token's number in the whole span
};

// Output holds the results of the attention kernel.
struct Attention::Output {
  Tensor heads;  // T [B,T,H D]
  // f32 [B,H,T], or empty. With documents, [H, time] of each of them, one after the other.
  Tensor lse;
};

Attention::Attention(const AttentionHeads& heads, const Linear& project_in,
                     const Linear& project_out, AttentionPositions positions, bool lean)
    : shape_(heads),
      project_in_(project_in),
      project_out_(project_out),
      positions_(std::move(positions)),
      lean_(lean) {}

Attention::Span Attention::training_span(const Tensor& packed) const {
  const std::int64_t time = packed.shape()[1];
  return {packed.shape()[0], time, 0, time, packed.view(), packed.view()};
}

Attention::Span Attention::cached_span(const Tensor& x, const Run& run) const {
  const KeyValueCache& cache = *run.cache;
  const std::int64_t time = x.shape()[1];
  const View all = cache.rows(shape_.layer);
  return {1,
          time,
          cache.length(),
          cache.capacity(),
          all,
          all.slice(cache.length() * shape_.width(), time * shape_.width())};
}

template <class Each>
void Attention::each_document(const Span& span, const Run& run, const Each& each) const {
  if (run.documents == nullptr || run.cache != nullptr) {
    each(span);
    return;
  }
  for (const DocumentRange& document : *run.documents) {
    const std::int64_t token = document.row * span.time + document.first;
    const View rows = span.all.slice(token * shape_.width(), document.time * shape_.width());
    each(Span{1, document.time, 0, document.time, rows, rows, token});
  }
}

// Queries and keys lie side by side, so that one kernel call rotates both.
void Attention::rotate(const Span& span, const View& rows, bool backward, Run& run) const {
  if (positions_.frequencies.empty()) {
    return;
  }
  each_document(span, run, [&](const Span& part) {
    const std::int64_t width = shape_.width();
    Rope rope;
    rope.batch = part.batch;
    rope.time = part.time;
    rope.heads = shape_.heads + shape_.kv_heads;
    rope.head_dim = shape_.head_dim;
    rope.first_position = part.first;
    rope.stride = width;
    rope.x = rows.slice(part.token * width, part.batch * part.time * width);
    rope.inverse_frequency = positions_.frequencies.view();
    rope.backward = backward;
    run.kernels().rope(run.stream(), rope);
  });
}

namespace {

// Returns the elements of the view from `first` on.
View tail(const View& view, std::int64_t first) { return view.slice(first, view.count - first); }

}  // namespace

AttentionForward Attention::arguments(const Span& part, const Output& output,
                                      const Run& run) const {
  const std::int64_t keys = shape_.heads * shape_.head_dim;
  const std::int64_t values = keys + shape_.kv_heads * shape_.head_dim;
  const std::int64_t tokens = part.batch * part.time;
  AttentionForward call;
  call.batch = part.batch;
  call.time = part.time;
  call.kv_time = part.first + part.time;
  call.heads = shape_.heads;
  call.kv_heads = shape_.kv_heads;
  call.head_dim = shape_.head_dim;
  call.q = part.fresh;
  call.k = tail(part.all, keys);
  call.v = tail(part.all, values);
  call.q_stride = shape_.width();
  call.kv_stride = shape_.width();
  call.kv_batch_rows = part.capacity;
  call.scale = shape_.scale;
  if (!positions_.slopes.empty()) {
    call.slopes = positions_.slopes.view();
  }
  call.out = output.heads.view().slice(part.token * keys, tokens * keys);
  if (!output.lse.empty()) {
    call.lse = output.lse.view().slice(part.token * shape_.heads, tokens * shape_.heads);
  }
  if (run.training && shape_.dropout > 0) {
    check(run.documents == nullptr, "dropout numbers the queries of whole samples");
    call.dropout = {shape_.dropout,    run.dropout.seed,
                    run.dropout.step,  static_cast<std::uint32_t>(shape_.layer),
                    shape_.first_head, run.first_sample,
                    run.position()};
  }
  return call;
}

Attention::Output Attention::attend(const Span& span, DType dtype, bool for_backward,
                                    Run& run) const {
  Output output;
  output.heads = Tensor(run.pool(), {span.batch, span.time, shape_.heads * shape_.head_dim}, dtype);
  if (for_backward) {
    output.lse = Tensor(run.pool(), {span.batch, shape_.heads, span.time}, DType::f32);
  }
  each_document(span, run, [&](const Span& part) {
    run.kernels().attention_forward(run.stream(), arguments(part, output, run));
  });
  return output;
}

Tensor Attention::forward(const Tensor& x, Saved& saved, Run& run) const {
  const std::int64_t batch = x.shape()[0];
  const std::int64_t time = x.shape()[1];
  Tensor packed;
  if (run.cache == nullptr) {
    packed = Tensor(run.pool(), {batch, time, shape_.width()}, x.dtype());
  }
  const Span span = run.cache == nullptr ? training_span(packed) : cached_span(x, run);
  project_in_.forward(x.view(), span.fresh, run);
  rotate(span, span.fresh, false, run);
  const Output output = attend(span, x.dtype(), saved.keeps() && !lean_, run);

  Tensor y(run.shared_pool(), {batch, time, project_out_.out}, x.dtype());
  project_out_.forward(output.heads.view(), y.view(), run);
  saved.push(packed);
  if (!lean_) {
    saved.push(output.heads);
    saved.push(output.lse);
  }
  return y;
}

BranchGradient Attention::backward(const Tensor& dy, const GatheredRows& x, Saved& saved,
                                   Run& run) const {
  Tensor dpacked;
  {
    Output output;
    if (!lean_) {
      output.lse = saved.pop();
      output.heads = saved.pop();
    }
    const Tensor packed = saved.pop();
    if (lean_) {
      output = attend(training_span(packed), packed.dtype(), true, run);
    }
    run.weight_gradient([this, dy, heads = output.heads](Run& then) {
      project_out_.backward_weight(dy.view(), heads.view(), then);
      project_out_.announce(then);
    });
    dpacked = packed_gradient(dy, packed, output, run);
  }
  return input_gradient(dpacked, x, run);
}

// Computes the gradient of the packed projection [B,T,(H + 2 Hkv) D], back through the output
// projection, attention and the rotation.
Tensor Attention::packed_gradient(const Tensor& dy, const Tensor& packed, const Output& output,
                                  Run& run) const {
  Tensor dpacked(run.pool(), packed.shape(), packed.dtype());
  const Span span = training_span(packed);
  {
    const Tensor dout(run.pool(), output.heads.shape(), output.heads.dtype());
    project_out_.backward_input(dy.view(), dout.view(), run);
    const std::int64_t keys = shape_.heads * shape_.head_dim;
    each_document(span, run, [&](const Span& part) {
      AttentionBackward call;
      call.forward = arguments(part, output, run);
      call.dout = dout.view().slice(part.token * keys, part.batch * part.time * keys);
      call.dq = tail(dpacked.view(), part.token * shape_.width());
      call.dk = tail(call.dq, keys);
      call.dv = tail(call.dq, keys + shape_.kv_heads * shape_.head_dim);
      run.kernels().attention_backward(run.stream(), call);
    });
  }
  rotate(span, dpacked.view(), true, run);
  return dpacked;
}

namespace {

// Sums the gradient f32 [elements] of key-value heads over the `copies` ranks that hold the same
// heads. All ranks of the group write their own gradient into the slot of their heads, and the
// slots are summed in one operation.
void sum_copies(const View& gradient, int copies, Run& run) {
  const std::int64_t slots = run.group->size() / copies;
  const Tensor all(run.group->pool(), {slots, gradient.count}, DType::f32);
  const View own = all.view().slice(run.group->rank() / copies * gradient.count, gradient.count);
  run.kernels().fill(run.stream(), all.view(), 0);
  run.kernels().cast(run.stream(), own, gradient);
  run.group->sum(all.view());
  run.kernels().cast(run.stream(), gradient, own);
}

}  // namespace

BranchGradient Attention::input_gradient(const Tensor& dpacked, const GatheredRows& x,
                                         Run& run) const {
  if (shape_.kv_copies == 1) {
    return project_in_.backward_entry(dpacked, x, run);
  }
  const Shape& rows = dpacked.shape();
  BranchGradient result;
  result.dx = Tensor(run.shared_pool(), {rows[0], rows[1], project_in_.in}, dpacked.dtype());
  project_in_.backward_input(dpacked.view(), result.dx.view(), run);
  result.sum = start_row_sum(result.dx, run);
  run.weight_gradient([this, dpacked, x](Run& then) {
    project_in_.backward_weight(dpacked.view(), x.whole(then).view(), then);
    // The parameters of keys and values follow that of the queries.
    if (!then.parameters[project_in_.weight].frozen) {
      sum_copies(then.gradients->gradient(project_in_.weight + 1, 2), shape_.kv_copies, then);
      if (project_in_.bias != kNoParameter) {
        sum_copies(then.gradients->gradient(project_in_.bias + 1, 2), shape_.kv_copies, then);
      }
    }
    for (const Adapters::Slot& slot : project_in_.adapters.slots) {
      if (slot.first > 0) {
        sum_copies(then.gradients->gradient(slot.b), shape_.kv_copies, then);
      }
    }
    project_in_.announce(then);
  });
  return result;
}

}  // namespace trireme
