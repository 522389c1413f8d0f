#include "src/nn/head.h"

#include <algorithm>
#include <optional>

#include "src/compute/counting_device.h"
#include "src/nn/shared_rows.h"

namespace trireme {
namespace {

// A GPU computes this many times more rows at once: each chunk reads and writes the gradient of W,
// and short products leave it idle. Chunks are about equal, in multiples of its products' tiles.
constexpr std::int64_t kMoreRowsOnGpu = 8;
constexpr std::int64_t kTile = 128;

std::int64_t chunk_rows(std::int64_t rows, std::int64_t most, Device device) {
  if (!acts_as_cuda(device)) {
    return std::min(most, rows);
  }
  const std::int64_t chunks = (rows + kMoreRowsOnGpu * most - 1) / (kMoreRowsOnGpu * most);
  const std::int64_t equal = (rows + chunks - 1) / chunks;
  return std::min((equal + kTile - 1) / kTile * kTile, rows);
}

}  // namespace

// Chunks divides a micro-batch's rows into chunks, and holds the workspace that all chunks share.
//
// On a GPU, products are several times faster if rows of all matrices are aligned. Unless the
// vocabulary has such a size, W is copied there with rows of zeros behind it, and logits have a
// column for each of them: 0, also in the gradient. The gradient of W then has these rows, too, in
// memory of its own, from which that of the vocabulary's rows is copied after the last chunk.
struct Head::Chunks {
  std::int64_t rows = 0;     // of the micro-batch
  std::int64_t at_once = 0;  // rows per chunk; the last may be shorter
  std::int64_t channels = 0;
  std::int64_t vocabulary = 0;
  std::int64_t columns = 0;  // of logits: the vocabulary, or more
  Tensor padded;             // T [columns, C], or empty
  Tensor gradient;           // f32 [columns, C] while such a copy is trained, or empty
  Tensor logits;             // T [at_once, columns]
  Tensor losses;             // f32 [rows]; of a teacher: divergences

  Chunks(const Head& head, const Tensor& normalized, Run& run)
      : channels(head.output.in), vocabulary(head.output.out) {
    const Device device = run.context.device();
    rows = normalized.elements() / channels;
    at_once = chunk_rows(rows, head.rows_at_once, device);
    columns = acts_as_cuda(device) ? aligned_row(vocabulary) : vocabulary;
    if (columns != vocabulary) {
      padded = Tensor(run.pool(), {columns, channels}, normalized.dtype());
      const std::int64_t own = vocabulary * channels;
      run.stream().copy(padded.view().slice(0, own), run.parameters.compute(head.output.weight));
      run.kernels().fill(run.stream(), padded.view().slice(own, padded.elements() - own), 0);
    }
    logits = Tensor(run.pool(), {at_once, columns}, normalized.dtype());
    losses = Tensor(run.pool(), {rows}, DType::f32);
  }
  // Call it before the gradient of the first chunk.
  void prepare_gradient(const Head& head, Run& run) {
    if (!padded.empty() && head.output.is_trained(run)) {
      gradient = Tensor(run.pool(), {columns, channels}, DType::f32);
    }
  }
  std::int64_t count(std::int64_t first) const { return std::min(at_once, rows - first); }
  View rows_of(const Tensor& tensor, std::int64_t first) const {
    return tensor.view().slice(first * channels, count(first) * channels);
  }
  View logits_of(std::int64_t first) const {
    return logits.view().slice(0, count(first) * columns);
  }
};

// Computes the logits of rows x.
void Head::project(const Chunks& chunks, const ConstView& x, const View& logits, Run& run) const {
  if (chunks.columns == chunks.vocabulary) {
    output.forward(x, logits, run);
    return;
  }
  Matmul product;
  product.m = x.count / chunks.channels;
  product.n = chunks.columns;
  product.k = chunks.channels;
  product.a = x;
  product.b = chunks.padded.view();
  product.transpose_b = true;
  product.c = logits;
  run.kernels().matmul(run.stream(), product);
}

// Computes dx from the gradient of logits.
void Head::project_back(const Chunks& chunks, const ConstView& logits, const View& dx,
                        Run& run) const {
  if (chunks.columns == chunks.vocabulary) {
    output.backward_input(logits, dx, run);
    return;
  }
  Matmul product;
  product.m = dx.count / chunks.channels;
  product.n = chunks.channels;
  product.k = chunks.columns;
  product.a = logits;
  product.b = chunks.padded.view();
  product.c = dx;
  run.kernels().matmul(run.stream(), product);
}

// Computes the part of the gradient of W that comes from rows x, the chunk that starts at row
// `first`, and adds it to that of earlier chunks.
void Head::weight_gradient(const Chunks& chunks, std::int64_t first, const ConstView& x,
                           Run& run) const {
  const View logits = chunks.logits_of(first);
  if (chunks.gradient.empty()) {
    output.backward_weight(logits, x, run, first > 0);
    return;
  }
  Matmul product;
  product.m = chunks.columns;
  product.n = chunks.channels;
  product.k = chunks.count(first);
  product.a = logits;
  product.transpose_a = true;
  product.b = x;
  product.c = chunks.gradient.view();
  product.accumulate = first > 0;
  run.kernels().matmul(run.stream(), product);
  if (first + chunks.at_once >= chunks.rows) {
    run.stream().copy(run.gradients->gradient(output.weight),
                      chunks.gradient.view().slice(0, chunks.vocabulary * chunks.channels));
  }
}

// Computes the losses of the chunk that starts at row `first` and, unless call.forward_only,
// replaces its logits by their gradient.
void Head::entropy(const Chunks& chunks, std::int64_t first, CrossEntropy call, Run& run) const {
  call.rows = chunks.count(first);
  call.vocabulary = chunks.vocabulary;
  call.pitch = chunks.columns;
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
  part.pitch = call.pitch;
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

// Computes the divergences from the teacher in the chunk that starts at row `first`, and replaces
// the teacher's logits, which go to `taught`, by the gradient of their share of the loss.
void Head::learn(const Chunks& chunks, const Chunks& taught, std::int64_t first,
                 const CrossEntropy& call, const Lesson& lesson, Run& run) const {
  lesson.head.project(taught, taught.rows_of(lesson.rows, first), taught.logits_of(first),
                      lesson.run);
  Distillation p;
  p.rows = chunks.count(first);
  p.vocabulary = chunks.vocabulary;
  p.pitch = chunks.columns;
  p.logits = chunks.logits_of(first);
  p.teacher = taught.logits_of(first);
  p.targets = call.targets.slice(first, p.rows);
  p.divergences = taught.losses.view().slice(first, p.rows);
  p.temperature = lesson.temperature;
  p.scale = call.scale * lesson.weight * lesson.temperature * lesson.temperature;
  run.kernels().distillation(run.stream(), p);
}

// Writes the sums of the losses, after those of a teacher have been joined with them.
void Head::write_losses(const Chunks& chunks, const Chunks* taught, const Lesson* lesson,
                        Run& run) const {
  const View losses = chunks.losses.view();
  if (lesson != nullptr) {
    run.kernels().sum(run.stream(), run.taught.slice(0, 1), losses);
    run.kernels().sum(run.stream(), run.taught.slice(1, 1), taught->losses.view());
    run.kernels().combine(run.stream(),
                          {.result = losses,
                           .a = 1 - lesson->weight,
                           .x = losses,
                           .b = lesson->weight * lesson->temperature * lesson->temperature,
                           .y = taught->losses.view()});
  }
  run.kernels().sum(run.stream(), run.loss, losses);
  const std::int64_t samples = run.sample_losses.count;
  for (std::int64_t b = 0; b < samples; ++b) {
    const std::int64_t tokens = chunks.rows / samples;
    run.kernels().sum(run.stream(), run.sample_losses.slice(b, 1),
                      losses.slice(b * tokens, tokens));
  }
}

Norm::Result Head::normalized(Residual& stream, Run& run) const {
  Norm::Result result = norm.forward(stream, run);
  if (logit_scale != 1) {
    run.kernels().scale(run.stream(), result.y.view(), logit_scale);
  }
  return result;
}

Tensor Head::forward_backward(Residual stream, const ConstView& targets, float scale, Run& run,
                              const Lesson* lesson) const {
  check(lesson == nullptr || run.alone(), "a group has no teacher");
  Norm::Result rows_of_w = normalized(stream, run);
  const Tensor y = gather_rows(rows_of_w.y, run);
  // Without a group, each chunk's dy overwrites its rows of y, which are not read again.
  const Tensor dy = run.alone() ? y : Tensor(run.group->pool(), y.shape(), y.dtype());
  TensorGroup::Exchange sum = 0;
  {
    Chunks chunks(*this, y, run);
    std::optional<Chunks> taught;
    if (lesson != nullptr) {
      taught.emplace(lesson->head, lesson->rows, lesson->run);
      check(taught->at_once == chunks.at_once && taught->columns == chunks.columns,
            "a teacher has the student's vocabulary");
    }
    chunks.prepare_gradient(*this, run);
    CrossEntropy call;
    call.targets = targets;
    call.scale = scale;
    call.terms = run.loss_terms;
    const float share = lesson == nullptr ? 1.0F : 1 - lesson->weight;
    for (std::int64_t first = 0; first < chunks.rows; first += chunks.at_once) {
      const View rows = chunks.rows_of(y, first);
      const View logits = chunks.logits_of(first);
      project(chunks, rows, logits, run);
      if (taught) {
        learn(chunks, *taught, first, call, *lesson, run);
      }
      CrossEntropy own = call;
      own.scale = share * scale;
      entropy(chunks, first, own, run);
      if (taught) {
        run.kernels().add(run.stream(), logits, taught->logits_of(first));
      }
      if (run.alone()) {
        weight_gradient(chunks, first, rows, run);
      }
      project_back(chunks, logits, chunks.rows_of(dy, first), run);
      if (!run.alone()) {
        sum = first + chunks.at_once < chunks.rows ? 0 : start_row_sum(dy, run);
        weight_gradient(chunks, first, rows, run);
      }
    }
    write_losses(chunks, taught ? &*taught : nullptr, lesson, run);
  }
  if (!tied) {
    output.announce(run);
  }
  // The norm's gradients are not put off to run.later, so that the head's gradient bucket can be
  // reduced soon.
  Run now = run;
  now.later = nullptr;
  const Tensor d = finish_row_sum(dy, sum, run);
  if (logit_scale != 1) {
    run.kernels().scale(run.stream(), d.view(), logit_scale);
  }
  return norm.backward(d, {}, rows_of_w.kept, now);
}

void Head::loss(Residual stream, const ConstView& targets, Run& run) const {
  const Tensor y = gather_rows(normalized(stream, run).y, run);
  const Chunks chunks(*this, y, run);
  CrossEntropy call;
  call.targets = targets;
  call.forward_only = true;
  for (std::int64_t first = 0; first < chunks.rows; first += chunks.at_once) {
    project(chunks, chunks.rows_of(y, first), chunks.logits_of(first), run);
    entropy(chunks, first, call, run);
  }
  run.kernels().sum(run.stream(), run.loss, chunks.losses.view());
}

Tensor Head::last_logits(Residual stream, std::int64_t rows, Run& run) const {
  check(run.alone(), "logits of a group are never gathered");
  const Tensor y = normalized(stream, run).y;
  Tensor logits(run.pool(), {rows, output.out}, DType::f32);
  const std::int64_t read = rows * output.in;
  output.forward(y.view().slice(y.elements() - read, read), logits.view(), run);
  return logits;
}

}  // namespace trireme
