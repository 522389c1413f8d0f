#include "src/nn/head.h"

#include <algorithm>

namespace trireme {
namespace {

// f32 [R] on the host: added in order, in double.
double sum_of(const ConstView& losses) {
  const auto* loss = as<float>(losses);
  double sum = 0;
  for (std::int64_t i = 0; i < losses.count; ++i) {
    sum += static_cast<double>(loss[i]);
  }
  return sum;
}

}  // namespace

// A run of rows and the workspace that all chunks share.
struct Head::Chunks {
  std::int64_t rows = 0;     // of the micro-batch
  std::int64_t at_once = 0;  // of a chunk; the last may be shorter
  std::int64_t channels = 0;
  std::int64_t vocabulary = 0;
  Tensor logits;  // T [at_once, V]
  Tensor losses;  // f32 [rows]

  Chunks(const Head& head, const Tensor& normalized, Run& run)
      : channels(head.output.in), vocabulary(head.output.out) {
    rows = normalized.elements() / channels;
    at_once = std::min(head.rows_at_once, rows);
    logits = Tensor(run.pool, {at_once, vocabulary}, normalized.dtype());
    losses = Tensor(run.pool, {rows}, DType::f32);
  }
  std::int64_t count(std::int64_t first) const { return std::min(at_once, rows - first); }
  View rows_of(const Tensor& tensor, std::int64_t first) const {
    return tensor.view().slice(first * channels, count(first) * channels);
  }
  View logits_of(std::int64_t first) const {
    return logits.view().slice(0, count(first) * vocabulary);
  }
};

CrossEntropy Head::entropy(const Chunks& chunks, std::int64_t first,
                           const ConstView& targets) const {
  CrossEntropy call;
  call.rows = chunks.count(first);
  call.vocabulary = chunks.vocabulary;
  call.logits = chunks.logits_of(first);
  call.targets = targets.slice(first, call.rows);
  call.losses = chunks.losses.view().slice(first, call.rows);
  return call;
}

Head::Result Head::forward_backward(Residual stream, const ConstView& targets, float scale,
                                    Run& run) const {
  Saved saved;
  const Tensor y = norm.forward(stream, saved, run);
  double loss = 0;
  {
    const Chunks chunks(*this, y, run);
    for (std::int64_t first = 0; first < chunks.rows; first += chunks.at_once) {
      const View rows = chunks.rows_of(y, first);
      CrossEntropy call = entropy(chunks, first, targets);
      call.scale = scale;
      output.forward(rows, call.logits, run);
      run.kernels.cross_entropy(run.stream, call);
      output.backward_weight(call.logits, rows, run, first > 0);
      // The rows have served their last purpose: their gradient takes their place.
      output.backward_input(call.logits, rows, run);
    }
    loss = sum_of(chunks.losses.view());
  }
  if (!tied) {
    output.announce(run);
  }
  norm.backward(y.view(), {}, y.view(), saved, run);
  return {loss, y};
}

double Head::loss(Residual stream, const ConstView& targets, Run& run) const {
  Saved nothing = Saved::nothing();
  const Tensor y = norm.forward(stream, nothing, run);
  const Chunks chunks(*this, y, run);
  for (std::int64_t first = 0; first < chunks.rows; first += chunks.at_once) {
    CrossEntropy call = entropy(chunks, first, targets);
    call.forward_only = true;
    output.forward(chunks.rows_of(y, first), call.logits, run);
    run.kernels.cross_entropy(run.stream, call);
  }
  return sum_of(chunks.losses.view());
}

Tensor Head::last_logits(Residual stream, Run& run) const {
  Saved nothing = Saved::nothing();
  const Tensor y = norm.forward(stream, nothing, run);
  Tensor logits(run.pool, {output.out}, DType::f32);
  output.forward(y.view().slice(y.elements() - output.in, output.in), logits.view(), run);
  return logits;
}

}  // namespace trireme
