#include "src/nn/head.h"

#include <algorithm>

#include "src/nn/shared_rows.h"

namespace trireme {
// Chunks divides a micro-batch's rows into chunks, and holds the workspace that all chunks share.
struct Head::Chunks {
  std::int64_t rows = 0;     // of the micro-batch
  std::int64_t at_once = 0;  // rows per chunk; the last may be shorter
  std::int64_t channels = 0;
  std::int64_t vocabulary = 0;
  Tensor logits;  // T [at_once, V]
  Tensor losses;  // f32 [rows]

  Chunks(const Head& head, const Tensor& normalized, Run& run)
      : channels(head.output.in), vocabulary(head.output.out) {
    rows = normalized.elements() / channels;
    at_once = std::min(head.rows_at_once, rows);
    logits = Tensor(run.pool(), {at_once, vocabulary}, normalized.dtype());
    losses = Tensor(run.pool(), {rows}, DType::f32);
  }
  std::int64_t count(std::int64_t first) const { return std::min(at_once, rows - first); }
  View rows_of(const Tensor& tensor, std::int64_t first) const {
    return tensor.view().slice(first * channels, count(first) * channels);
  }
  View logits_of(std::int64_t first) const {
    return logits.view().slice(0, count(first) * vocabulary);
  }
};

// Computes the losses of the chunk that starts at row `first` and, unless call.forward_only,
// replaces its logits by their gradient.
void Head::entropy(const Chunks& chunks, std::int64_t first, CrossEntropy call, Run& run) const {
  call.rows = chunks.count(first);
  call.vocabulary = chunks.vocabulary;
  call.logits = chunks.logits_of(first);
  call.targets = call.targets.slice(first, call.rows);
  call.losses = chunks.losses.view().slice(first, call.rows);
  if (run.alone()) {
    run.kernels().cross_entropy(run.stream(), call);
    return;
  }
  const std::int64_t parts = run.group->size();
  const Tensor statistics(run.group->pool(), {parts, call.rows, kRowStatistics}, DType::f64);
  SoftmaxPart part;
  part.rows = call.rows;
  part.vocabulary = call.vocabulary;
  part.first_id = vocabulary.first;
  part.logits = call.logits;
  part.targets = call.targets;
  const std::int64_t own = kRowStatistics * call.rows;
  part.statistics = statistics.view().slice(run.group->rank() * own, own);
  part.sum_logits = call.terms.label_smoothing > 0;
  run.kernels().softmax_part(run.stream(), part);
  run.group->gather(statistics.view());
  run.kernels().cross_entropy_of_parts(
      run.stream(), {call, vocabulary.first, parts, statistics.view(), whole_vocabulary});
}

Tensor Head::forward_backward(Residual stream, const ConstView& targets, float scale,
                              Run& run) const {
  Norm::Result normalized = norm.forward(stream, run);
  const Tensor y = gather_rows(normalized.y, run);
  // Without a group, each chunk's dy overwrites its rows of y, which are not read again.
  const Tensor dy = run.alone() ? y : Tensor(run.group->pool(), y.shape(), y.dtype());
  TensorGroup::Exchange sum = 0;
  {
    const Chunks chunks(*this, y, run);
    CrossEntropy call;
    call.targets = targets;
    call.scale = scale;
    call.terms = run.loss_terms;
    for (std::int64_t first = 0; first < chunks.rows; first += chunks.at_once) {
      const View rows = chunks.rows_of(y, first);
      const View logits = chunks.logits_of(first);
      output.forward(rows, logits, run);
      entropy(chunks, first, call, run);
      if (run.alone()) {
        output.backward_weight(logits, rows, run, first > 0);
      }
      output.backward_input(logits, chunks.rows_of(dy, first), run);
      if (!run.alone()) {
        sum = first + chunks.at_once < chunks.rows ? 0 : start_row_sum(dy, run);
        output.backward_weight(logits, rows, run, first > 0);
      }
    }
    run.kernels().sum(run.stream(), run.loss, chunks.losses.view());
  }
  if (!tied) {
    output.announce(run);
  }
  // The norm's gradients are not put off to run.later, so that the head's gradient bucket can be
  // reduced soon.
  Run now = run;
  now.later = nullptr;
  return norm.backward(finish_row_sum(dy, sum, run), {}, normalized.kept, now);
}

void Head::loss(Residual stream, const ConstView& targets, Run& run) const {
  const Tensor y = gather_rows(norm.forward(stream, run).y, run);
  const Chunks chunks(*this, y, run);
  CrossEntropy call;
  call.targets = targets;
  call.forward_only = true;
  for (std::int64_t first = 0; first < chunks.rows; first += chunks.at_once) {
    output.forward(chunks.rows_of(y, first), chunks.logits_of(first), run);
    entropy(chunks, first, call, run);
  }
  run.kernels().sum(run.stream(), run.loss, chunks.losses.view());
}

Tensor Head::last_logits(Residual stream, Run& run) const {
  check(run.alone(), "logits of a group are never gathered");
  const Tensor y = norm.forward(stream, run).y;
  Tensor logits(run.pool(), {output.out}, DType::f32);
  output.forward(y.view().slice(y.elements() - output.in, output.in), logits.view(), run);
  return logits;
}

}  // namespace trireme
