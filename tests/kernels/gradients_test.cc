// Compares each table's backward kernels with finite differences of its forward kernels, in f32.
// With L = <w, y(x)>, the derivative of L along a direction d, (L(x + h d) - L(x - h d)) / 2h, must
// be <dx, d>, where dx is what backward computes from dy = w.
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "src/compute/kernel_choice.h"
#include "tests/kernels/array.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

// The table that the running test checks.
const Kernels* tested = nullptr;
const Kernels& kernels() { return *tested; }

Array f32(std::int64_t count, std::uint32_t seed) { return Array::random(count, DType::f32, seed); }

double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.count(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

// Checks that dx is the gradient of loss(), which reads x. The directions cover all of x as well as
// single elements.
void expect_gradient(const std::string& what, Array& x, const Array& dx,
                     const std::function<double()>& loss, double step = 1e-2) {
  for (std::uint32_t trial = 0; trial < 6; ++trial) {
    Array direction(x.count(), DType::f32);
    if (trial < 3) {
      direction = f32(x.count(), 100 + trial);
    } else {
      direction.set((trial * 7919) % x.count(), 1);
    }
    const Array start = x;
    const auto loss_at = [&](double distance) {
      for (std::int64_t i = 0; i < x.count(); ++i) {
        x.set(i, start[i] + distance * direction[i]);
      }
      return loss();
    };
    // Richardson's extrapolation of two central differences has an error of order step^4.
    const double far = (loss_at(step) - loss_at(-step)) / (2 * step);
    const double near = (loss_at(step / 2) - loss_at(-step / 2)) / step;
    x = start;
    const double expected = (4 * near - far) / 3;
    const double size = std::sqrt(dot(dx, dx) * dot(direction, direction));
    EXPECT_NEAR(dot(dx, direction), expected, 1e-3 * std::abs(expected) + 2e-4 * size + 1e-6)
        << what << ", direction " << trial;
  }
}

class Gradient : public ::testing::TestWithParam<const Kernels*> {
 protected:
  void SetUp() override { tested = GetParam(); }
  Stream stream_ = test_stream(1);
};

TEST_P(Gradient, MatmulAndItsBias) {
  const std::int64_t m = 5;
  const std::int64_t n = 7;
  const std::int64_t k = 6;
  Array a = f32(m * k, 1);
  Array b = f32(k * n, 2);
  Array bias = f32(n, 3);
  const Array w = f32(m * n, 4);
  const auto loss = [&] {
    Array c(m * n, DType::f32);
    kernels().matmul(stream_, {.m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .bias = bias});
    return dot(w, c);
  };
  Array da(m * k, DType::f32);
  Array db(k * n, DType::f32);
  Array dbias(n, DType::f32);
  kernels().matmul(stream_, {.m = m, .n = k, .k = n, .a = w, .b = b, .c = da, .transpose_b = true});
  kernels().matmul(stream_, {.m = k, .n = n, .k = m, .a = a, .b = w, .c = db, .transpose_a = true});
  kernels().column_sum(stream_, {.m = m, .n = n, .x = w, .sum = dbias});
  expect_gradient("a", a, da, loss);
  expect_gradient("b", b, db, loss);
  expect_gradient("bias", bias, dbias, loss);
}

// Checks the backward of y = gelu(x A) B through the two epilogues.
TEST_P(Gradient, TheGeluEpilogues) {
  const std::int64_t n = 6;
  Array x = f32(n * n, 1);
  const Array a = f32(n * n, 2);
  const Array b = f32(n * n, 3);
  const Array w = f32(n * n, 4);
  Array aux(n * n, DType::f32);
  const auto loss = [&] {
    Array y(n * n, DType::f32);
    Array z(n * n, DType::f32);
    kernels().matmul(
        stream_,
        {.m = n, .n = n, .k = n, .a = x, .b = a, .c = y, .aux = aux, .epilogue = Epilogue::gelu});
    kernels().matmul(stream_, {.m = n, .n = n, .k = n, .a = y, .b = b, .c = z});
    return dot(w, z);
  };
  loss();
  Array daux(n * n, DType::f32);
  Array dx(n * n, DType::f32);
  kernels().matmul(stream_, {.m = n,
                             .n = n,
                             .k = n,
                             .a = w,
                             .b = b,
                             .c = daux,
                             .aux = aux,
                             .transpose_b = true,
                             .epilogue = Epilogue::gelu_backward});
  kernels().matmul(stream_,
                   {.m = n, .n = n, .k = n, .a = daux, .b = a, .c = dx, .transpose_b = true});
  expect_gradient("x", x, dx, loss);
}

TEST_P(Gradient, Embedding) {
  const std::int64_t channels = 5;
  const Array ids = Array::ids(2 * 4, 3, 1);
  Array token = f32(3 * channels, 2);
  Array position = f32(6 * channels, 3);
  const Array w = f32(2 * 4 * channels, 4);
  const auto loss = [&] {
    Array out(w.count(), DType::f32);
    kernels().embedding_forward(stream_, {.batch = 2,
                                          .time = 4,
                                          .channels = channels,
                                          .out = out,
                                          .ids = ids,
                                          .token = token,
                                          .position = position});
    return dot(w, out);
  };
  Array dtoken(token.count(), DType::f32);
  Array dposition(position.count(), DType::f32);
  kernels().embedding_backward(stream_, {.batch = 2,
                                         .time = 4,
                                         .channels = channels,
                                         .dout = w,
                                         .ids = ids,
                                         .dtoken = dtoken,
                                         .dposition = dposition});
  expect_gradient("token", token, dtoken, loss);
  expect_gradient("position", position, dposition, loss);
}

void check_norm(Stream& stream, bool centred) {
  const std::int64_t rows = 4;
  const std::int64_t channels = 9;
  Array x = f32(rows * channels, 1);
  Array residual = f32(x.count(), 2);
  Array weight = f32(channels, 3);
  Array bias = f32(channels, 4);
  const Array w_y = f32(x.count(), 5);
  const Array w_sum = f32(x.count(), 6);
  Array sum(x.count(), DType::f32);
  Array y(x.count(), DType::f32);
  Array mean(rows, DType::f32);
  Array rstd(rows, DType::f32);
  const auto loss = [&] {
    const NormForward p{.rows = rows,
                        .channels = channels,
                        .x = x,
                        .residual = residual,
                        .sum = sum,
                        .weight = weight,
                        .bias = centred ? bias.view() : View{},
                        .y = y,
                        .mean = centred ? mean.view() : View{},
                        .rstd = rstd};
    (centred ? kernels().layer_norm_forward : kernels().rms_norm_forward)(stream, p);
    return dot(w_y, y) + dot(w_sum, sum);
  };
  loss();
  Array dx(x.count(), DType::f32);
  Array dweight(channels, DType::f32);
  Array dbias(channels, DType::f32);
  const NormBackward p{.rows = rows,
                       .channels = channels,
                       .dy = w_y,
                       .x = sum,
                       .weight = weight,
                       .mean = centred ? mean.view() : View{},
                       .rstd = rstd,
                       .dresidual = w_sum,
                       .dx = dx,
                       .dweight = dweight,
                       .dbias = centred ? dbias.view() : View{}};
  (centred ? kernels().layer_norm_backward : kernels().rms_norm_backward)(stream, p);
  expect_gradient("x", x, dx, loss);
  expect_gradient("residual", residual, dx, loss);
  expect_gradient("weight", weight, dweight, loss);
  if (centred) {
    expect_gradient("bias", bias, dbias, loss);
  }
}

TEST_P(Gradient, LayerNormWithResidual) { check_norm(stream_, true); }
TEST_P(Gradient, RmsNormWithResidual) { check_norm(stream_, false); }

TEST_P(Gradient, Rope) {
  Array x = f32(2 * 3 * 20, 1);
  Array frequency(4, DType::f32);
  for (std::int64_t j = 0; j < 4; ++j) {
    frequency.set(j, std::pow(10.0, -static_cast<double>(j)));
  }
  Array dx = f32(x.count(), 2);
  const Array w = dx;
  Rope p{.batch = 2,
         .time = 3,
         .heads = 2,
         .head_dim = 8,
         .first_position = 1,
         .stride = 20,
         .x = {},
         .inverse_frequency = frequency};
  const auto loss = [&] {
    Array y = x;
    Rope forward = p;
    forward.x = y;
    kernels().rope(stream_, forward);
    return dot(w, y);
  };
  Rope backward = p;
  backward.x = dx;
  backward.backward = true;
  kernels().rope(stream_, backward);
  expect_gradient("x", x, dx, loss);
}

void check_attention(Stream& stream, const AttentionDropout& dropout, bool alibi = false) {
  const std::int64_t rows = 2 * 5;
  Array q = f32(rows * 4 * 3, 1);
  Array k = f32(rows * 2 * 3, 2);
  Array v = f32(rows * 2 * 3, 3);
  Array out(q.count(), DType::f32);
  Array lse(2 * 4 * 5, DType::f32);
  const Array w = f32(q.count(), 4);
  Array slopes(4, DType::f32);
  for (std::int64_t head = 0; head < 4; ++head) {
    slopes.set(head, 0.1 * static_cast<double>(head + 1));
  }
  const AttentionForward p{.batch = 2,
                           .time = 5,
                           .kv_time = 5,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 3,
                           .q = q,
                           .k = k,
                           .v = v,
                           .q_stride = 12,
                           .kv_stride = 6,
                           .kv_batch_rows = 5,
                           .out = out,
                           .lse = lse,
                           .dropout = dropout,
                           .scale = alibi ? 0.4F : 0,
                           .slopes = alibi ? ConstView(slopes.view()) : ConstView()};
  const auto loss = [&] {
    kernels().attention_forward(stream, p);
    return dot(w, out);
  };
  loss();
  Array dq(q.count(), DType::f32);
  Array dk(k.count(), DType::f32);
  Array dv(v.count(), DType::f32);
  kernels().attention_backward(stream, {.forward = p, .dout = w, .dq = dq, .dk = dk, .dv = dv});
  expect_gradient("q", q, dq, loss);
  expect_gradient("k", k, dk, loss);
  expect_gradient("v", v, dv, loss);
}

TEST_P(Gradient, AttentionWithGroupedQueries) { check_attention(stream_, {}); }
TEST_P(Gradient, AttentionWithAlibi) { check_attention(stream_, {}, true); }
TEST_P(Gradient, AttentionWithAlibiAndDropout) {
  check_attention(stream_, {.probability = 0.4F, .seed = 3, .step = 4, .layer = 2}, true);
}
TEST_P(Gradient, AttentionWithDropout) {
  check_attention(stream_, {.probability = 0.4F, .seed = 3, .step = 4, .layer = 2});
}

TEST_P(Gradient, GeluAndSwiglu) {
  Array x = f32(50, 1);
  Array up = f32(50, 2);
  const Array w = f32(50, 3);
  const auto gelu_loss = [&] {
    Array y(50, DType::f32);
    kernels().gelu_forward(stream_, y, x);
    return dot(w, y);
  };
  const auto swiglu_loss = [&] {
    Array y(50, DType::f32);
    kernels().swiglu_forward(stream_, y, x, up);
    return dot(w, y);
  };
  Array dx(50, DType::f32);
  Array dup(50, DType::f32);
  kernels().gelu_backward(stream_, dx, w, x);
  expect_gradient("gelu", x, dx, gelu_loss);
  kernels().swiglu_backward(stream_, dx, dup, w, x, up);
  expect_gradient("gate", x, dx, swiglu_loss);
  expect_gradient("up", up, dup, swiglu_loss);
}

TEST_P(Gradient, DropoutIsItsOwnBackward) {
  Array x = f32(60, 1);
  const Array w = f32(60, 2);
  Array dx(60, DType::f32);
  const auto drop = [&](View to, ConstView from) {
    kernels().dropout(stream_, {.batch = 2,
                                .elements_per_sample = 30,
                                .seed = 3,
                                .step = 4,
                                .site = 5,
                                .probability = 0.4F,
                                .x = from,
                                .y = to});
  };
  drop(dx, w);
  expect_gradient("x", x, dx, [&] {
    Array y(60, DType::f32);
    drop(y, x);
    return dot(w, y);
  });
}

void check_cross_entropy(Stream& stream, const LossTerms& terms) {
  const std::int64_t rows = 4;
  const std::int64_t vocabulary = 11;
  Array logits = f32(rows * vocabulary, 1);
  const Array targets = Array::ids(rows, vocabulary, 2);
  const auto run = [&](View at, bool forward_only) {
    Array losses(rows, DType::f32);
    kernels().cross_entropy(stream, {.rows = rows,
                                     .vocabulary = vocabulary,
                                     .logits = at,
                                     .targets = targets,
                                     .losses = losses,
                                     .scale = 0.25F,
                                     .forward_only = forward_only,
                                     .terms = terms});
    return 0.25 * (losses[0] + losses[1] + losses[2] + losses[3]);
  };
  Array dlogits = logits;
  run(dlogits, false);
  expect_gradient("logits", logits, dlogits, [&] { return run(logits, true); });
}

TEST_P(Gradient, CrossEntropy) { check_cross_entropy(stream_, {}); }
TEST_P(Gradient, CrossEntropyWithLabelSmoothing) { check_cross_entropy(stream_, {0.2F, 0}); }
TEST_P(Gradient, CrossEntropyWithZLoss) { check_cross_entropy(stream_, {0, 0.1F}); }
TEST_P(Gradient, CrossEntropyWithBothTerms) { check_cross_entropy(stream_, {0.2F, 0.1F}); }

TEST_P(Gradient, Distillation) {
  const std::int64_t rows = 4;
  const std::int64_t vocabulary = 11;
  Array logits = f32(rows * vocabulary, 1);
  const Array targets = Array::ids(rows, vocabulary, 2);
  for (const float temperature : {1.0F, 3.0F}) {
    const auto run = [&](Array& teacher, bool forward_only) {
      Array divergences(rows, DType::f32);
      kernels().distillation(stream_, {.rows = rows,
                                       .vocabulary = vocabulary,
                                       .logits = logits,
                                       .teacher = teacher,
                                       .targets = targets,
                                       .divergences = divergences,
                                       .temperature = temperature,
                                       .scale = 2.5F,
                                       .forward_only = forward_only});
      return 2.5 * (divergences[0] + divergences[1] + divergences[2] + divergences[3]);
    };
    Array gradient = f32(rows * vocabulary, 3);
    run(gradient, false);
    expect_gradient("logits", logits, gradient, [&] {
      Array teacher = f32(rows * vocabulary, 3);
      return run(teacher, true);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Gradient, ::testing::ValuesIn(tables_and_reference()),
                         [](const auto& test) { return test_name(*test.param); });

}  // namespace
}  // namespace trireme::testing
