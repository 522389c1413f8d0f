// Checks kernels that work row by row: embedding, norms, rotary positions, sums over rows, the
// loss.
#include <algorithm>

#include "src/train/numerics/bench.h"

namespace trireme {
namespace {

// Number of token ids of the embedding in the check.
constexpr std::int64_t kIds = 64;

void check_embedding(CheckBench& bench) {
  const KernelShapes& s = bench.shapes;
  const std::int64_t rows = bench.rows_for(s.channels);
  const std::int64_t all = rows * s.channels;
  const Tensor token = bench.numbers(kIds * s.channels, s.dtype, 1);
  const Tensor position = bench.numbers(all, s.dtype, 2);
  const Tensor ids = bench.ids(rows, kIds);
  const auto forward = [&](const Kernels& table) {
    const Tensor out = bench.unwritten(all, s.dtype);
    EmbeddingForward p;
    p.batch = 1;
    p.time = rows;
    p.channels = s.channels;
    p.out = out.view();
    p.ids = ids.view();
    p.token = token.view();
    p.position = s.has_learned_positions() ? ConstView(position.view()) : ConstView();
    table.embedding_forward(bench.stream, p);
    return out;
  };
  bench.compare("embedding_forward", forward(bench.kernels).view(),
                forward(bench.reference).view());

  const auto backward = [&](const Kernels& table) {
    // dtoken, which is added to, and dposition.
    const Tensor d = bench.numbers(kIds * s.channels + all, DType::f32, 3);
    EmbeddingBackward p;
    p.batch = 1;
    p.time = rows;
    p.channels = s.channels;
    p.dout = position.view();
    p.ids = ids.view();
    p.dtoken = d.view().slice(0, kIds * s.channels);
    p.dposition = s.has_learned_positions() ? d.view().slice(kIds * s.channels, all) : View();
    table.embedding_backward(bench.stream, p);
    return d;
  };
  bench.compare("embedding_backward", backward(bench.kernels).view(),
                backward(bench.reference).view(), rows);
}

// Checks the norm of one rank's residual stream, forward and backward.
void check_norm(CheckBench& bench) {
  const KernelShapes& s = bench.shapes;
  const std::int64_t rows = bench.rows_for(s.channels);
  const std::int64_t all = rows * s.channels;
  const Tensor x = bench.numbers(all, s.dtype, 1);
  const Tensor dy = bench.numbers(all, s.dtype, 2);
  const Tensor weight = bench.numbers(2 * s.channels, s.dtype, 3);
  const Tensor moments = bench.unwritten(2 * rows, DType::f32);  // the reference's results
  const char* const name = s.llama ? "rms_norm" : "layer_norm";
  const View mean = s.llama ? View() : moments.view().slice(0, rows);
  const View rstd = moments.view().slice(rows, rows);
  const auto forward = [&](const Kernels& table, const View& to_mean, const View& to_rstd) {
    const Tensor y = bench.unwritten(all, s.dtype);
    NormForward p;
    p.rows = rows;
    p.channels = s.channels;
    p.x = x.view();
    p.weight = weight.view().slice(0, s.channels);
    p.bias = s.llama ? ConstView() : ConstView(weight.view().slice(s.channels, s.channels));
    p.y = y.view();
    p.mean = to_mean;
    p.rstd = to_rstd;
    (s.llama ? table.rms_norm_forward : table.layer_norm_forward)(bench.stream, p);
    return y;
  };
  const Tensor found = bench.unwritten(2 * rows, DType::f32);
  const Tensor y = forward(bench.kernels, s.llama ? View() : found.view().slice(0, rows),
                           found.view().slice(rows, rows));
  bench.compare(std::string(name) + "_forward", y.view(),
                forward(bench.reference, mean, rstd).view(), s.channels);
  bench.compare(std::string(name) + "_forward (1/deviation)", found.view().slice(rows, rows), rstd,
                s.channels);

  const auto backward = [&](const Kernels& table, const Tensor& dweight) {
    const Tensor dx = bench.unwritten(all, s.dtype);
    NormBackward p;
    p.rows = rows;
    p.channels = s.channels;
    p.dy = dy.view();
    p.x = x.view();
    p.weight = weight.view().slice(0, s.channels);
    p.mean = mean;
    p.rstd = rstd;
    p.dx = dx.view();
    p.dweight = dweight.view().slice(0, s.channels);
    p.dbias = s.llama ? View() : dweight.view().slice(s.channels, s.channels);
    (s.llama ? table.rms_norm_backward : table.layer_norm_backward)(bench.stream, p);
    return dx;
  };
  const Tensor dweight = bench.numbers(2 * s.channels, DType::f32, 4);
  const Tensor expected = bench.numbers(2 * s.channels, DType::f32, 4);
  const Tensor dx = backward(bench.kernels, dweight);
  bench.compare(std::string(name) + "_backward", dx.view(),
                backward(bench.reference, expected).view(), s.channels);
  bench.compare(std::string(name) + "_backward (weight)", dweight.view(), expected.view(), rows);
}

void check_rope(CheckBench& bench) {
  const KernelShapes& s = bench.shapes;
  const std::int64_t stride = (s.heads + 2 * s.kv_heads) * s.head_dim;
  const std::int64_t time = std::min(s.time, bench.rows_for(s.heads * s.head_dim));
  const Tensor frequency = bench.numbers(s.head_dim / 2, DType::f32, 1);
  const auto rotated = [&](const Kernels& table) {
    Tensor x = bench.numbers(time * stride, s.dtype, 2);
    Rope p;
    p.batch = 1;
    p.time = time;
    p.heads = s.heads;
    p.head_dim = s.head_dim;
    p.first_position = s.time - time;
    p.stride = stride;
    p.x = x.view();
    p.inverse_frequency = frequency.view();
    table.rope(bench.stream, p);
    return x;
  };
  bench.compare("rope", rotated(bench.kernels).view(), rotated(bench.reference).view());
}

void check_column_sum(CheckBench& bench) {
  const KernelShapes& s = bench.shapes;
  const std::int64_t rows = bench.rows_for(s.ffn);
  const Tensor x = bench.numbers(rows * s.ffn, s.dtype, 1);
  const Tensor found = bench.unwritten(s.ffn, DType::f32);
  const Tensor expected = bench.unwritten(s.ffn, DType::f32);
  bench.kernels.column_sum(bench.stream, {rows, s.ffn, x.view(), found.view()});
  bench.reference.column_sum(bench.stream, {rows, s.ffn, x.view(), expected.view()});
  bench.compare("column_sum", found.view(), expected.view(), rows);
}

// Returns the gradient of the logits, and writes the losses. If ranks share the vocabulary, goes
// through their statistics, as if this rank's part were all of it.
Tensor loss_and_gradient(CheckBench& bench, const Kernels& table, const Tensor& targets,
                         std::int64_t rows, const Tensor& losses) {
  const KernelShapes& s = bench.shapes;
  Tensor logits = bench.numbers(rows * s.vocabulary, s.dtype, 1);
  CrossEntropy p;
  p.rows = rows;
  p.vocabulary = s.vocabulary;
  p.logits = logits.view();
  p.targets = targets.view();
  p.losses = losses.view();
  p.scale = 1;
  p.terms = s.loss_terms;
  if (!s.shares_vocabulary) {
    table.cross_entropy(bench.stream, p);
    return logits;
  }
  const Tensor statistics = bench.unwritten(rows * kRowStatistics, DType::f64);
  table.softmax_part(bench.stream, {rows, s.vocabulary, 0, 0, logits.view(), targets.view(),
                                    statistics.view(), s.loss_terms.label_smoothing > 0});
  table.cross_entropy_of_parts(bench.stream, {p, 0, 1, statistics.view(), s.vocabulary});
  return logits;
}

void check_loss(CheckBench& bench) {
  const KernelShapes& s = bench.shapes;
  const std::int64_t rows = std::min(bench.rows_for(s.vocabulary), s.rows());
  const Tensor targets = bench.ids(rows, s.vocabulary);
  const Tensor found = bench.unwritten(rows, DType::f32);
  const Tensor expected = bench.unwritten(rows, DType::f32);
  const Tensor gradient = loss_and_gradient(bench, bench.kernels, targets, rows, found);
  const Tensor right = loss_and_gradient(bench, bench.reference, targets, rows, expected);
  bench.compare("cross_entropy", found.view(), expected.view(), s.vocabulary);
  bench.compare("cross_entropy (gradient)", gradient.view(), right.view());
}

// At high temperatures, divergences of random logits are smaller than the rounding of the terms
// that they are the sum of, which the run bears, but which would look like a fault. A kernel does
// the same at each temperature.
constexpr float kHottestCheck = 2;

void check_distillation(CheckBench& bench) {
  const KernelShapes& s = bench.shapes;
  const std::int64_t rows = std::min(bench.rows_for(s.vocabulary), s.rows());
  const Tensor targets = bench.ids(rows, s.vocabulary);
  const Tensor logits = bench.numbers(rows * s.vocabulary, s.dtype, 1);
  const Tensor found = bench.unwritten(rows, DType::f32);
  const Tensor expected = bench.unwritten(rows, DType::f32);
  const auto gradient = [&](const Kernels& table, const Tensor& divergences) {
    Tensor teacher = bench.numbers(rows * s.vocabulary, s.dtype, 2);
    Distillation p;
    p.rows = rows;
    p.vocabulary = s.vocabulary;
    p.logits = logits.view();
    p.teacher = teacher.view();
    p.targets = targets.view();
    p.divergences = divergences.view();
    p.temperature = std::min(s.temperature, kHottestCheck);
    p.scale = 1;
    table.distillation(bench.stream, p);
    return teacher;
  };
  const Tensor computed = gradient(bench.kernels, found);
  const Tensor right = gradient(bench.reference, expected);
  bench.compare("distillation", found.view(), expected.view(), s.vocabulary);
  bench.compare("distillation (gradient)", computed.view(), right.view());
}

}  // namespace

void check_rows(CheckBench& bench) {
  check_embedding(bench);
  check_norm(bench);
  if (bench.shapes.llama) {
    check_rope(bench);
  }
  check_column_sum(bench);
  check_loss(bench);
  if (bench.shapes.temperature > 0) {
    check_distillation(bench);
  }
}

}  // namespace trireme
