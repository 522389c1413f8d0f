// Tests special values: infinities, NaN, masked logits, an analytic AdamW step, published random
// words.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/compute/kernel_choice.h"
#include "tests/kernels/array.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

class EachTable : public ::testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels() { return *GetParam(); }
  Stream stream_ = test_stream(2);
};

Array of(std::initializer_list<double> values) {
  Array array(static_cast<std::int64_t>(values.size()), DType::f32);
  std::int64_t i = 0;
  for (const double value : values) {
    array.set(i++, value);
  }
  return array;
}

TEST_P(EachTable, GeluOfKnownNumbers) {
  const Array x = of({0, 1, -1, 3, 1e30, -100});
  Array y(x.count(), DType::f32);
  kernels().gelu_forward(stream_, y, x);
  // The values are from torch.nn.functional.gelu(x, approximate='tanh').
  const double expected[] = {0, 0.8411920070648193, -0.1588079929351807, 2.996362686157226, 1e30,
                             0};
  for (std::int64_t i = 0; i < x.count(); ++i) {
    EXPECT_NEAR(y[i], expected[i], 2e-6 * (1 + std::abs(expected[i])));
  }
}

// Graphs repeat a call with another step and sample. On devices, the numbers lie there, where
// MicroBatchGraphsTest shows that kernels read them.
TEST_P(EachTable, DropoutReadsItsPositionWhenItRuns) {
  if (runs_on_device(kernels())) {
    GTEST_SKIP() << "this test writes the position to memory of the host";
  }
  constexpr std::int64_t kWidth = 24;
  const Array x = Array::uniform(2 * kWidth, DType::f32, 1, 1);
  const auto dropped = [&](std::uint32_t step, std::int64_t sample, const std::uint32_t* position) {
    Array y(x.count(), DType::f32);
    Dropout p;
    p.batch = 2;
    p.elements_per_sample = kWidth;
    p.first_sample = sample;
    p.seed = 5;
    p.step = step;
    p.probability = 0.5F;
    p.x = x;
    p.y = y;
    p.position = position;
    kernels().dropout(stream_, p);
    Array out(4 * kWidth / 4, DType::f32);
    AttentionForward a;
    a.batch = 2;
    a.time = a.kv_time = a.kv_batch_rows = kWidth / 2;
    a.heads = a.kv_heads = a.head_dim = a.q_stride = a.kv_stride = 1;
    a.q = a.k = a.v = x.view().slice(0, kWidth);
    a.out = out;
    a.dropout = {0.5F, 5, step, 1, 0, sample, position};
    kernels().attention_forward(stream_, a);
    std::vector<double> all;
    for (std::int64_t i = 0; i < y.count(); ++i) {
      all.push_back(y[i]);
    }
    for (std::int64_t i = 0; i < out.count(); ++i) {
      all.push_back(out[i]);
    }
    return all;
  };
  const std::uint32_t position[] = {7, 11};
  EXPECT_EQ(dropped(0, 0, position), dropped(7, 11, nullptr));
  EXPECT_NE(dropped(0, 0, nullptr), dropped(7, 11, nullptr));
}

TEST_P(EachTable, NanStaysNan) {
  const Array x = of({1, kNan, 2, kNan});
  const Array ones = of({1, 1, 1, 1});
  Array y(4, DType::f32);
  Array dup(4, DType::f32);
  const auto expect_same_nans = [&](const char* what) {
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(std::isnan(y[i]), std::isnan(x[i])) << what << " " << i;
    }
  };
  kernels().gelu_forward(stream_, y, x);
  expect_same_nans("gelu");
  kernels().gelu_backward(stream_, y, ones, x);
  expect_same_nans("gelu backward");
  kernels().swiglu_forward(stream_, y, x, ones);
  expect_same_nans("swiglu");
  kernels().swiglu_backward(stream_, y, dup, ones, x, ones);
  expect_same_nans("swiglu backward");
  for (const DType type : half_types()) {
    Array half(4, type);
    kernels().cast(stream_, half, x);
    EXPECT_TRUE(std::isnan(half[1]) && !std::isnan(half[0]));
  }
}

// The loss of a diverged model must be NaN.
TEST_P(EachTable, TheLossOfNanLogitsIsNan) {
  Array logits = Array::random(100, DType::f32, 1);
  logits.set(37, kNan);
  const Array targets = Array::ids(1, 100, 1);
  Array loss(1, DType::f32);
  kernels().cross_entropy(stream_, {.rows = 1,
                                    .vocabulary = 100,
                                    .logits = logits,
                                    .targets = targets,
                                    .losses = loss,
                                    .scale = 1});
  EXPECT_TRUE(std::isnan(loss[0]));
}

TEST_P(EachTable, MaskedLogitsTakeNoPart) {
  Array logits = Array::random(5000, DType::f32, 1);
  for (std::int64_t i = 0; i < 4900; ++i) {
    logits.set(i, -kInfinity);
  }
  Array dense(100, DType::f32);
  for (std::int64_t i = 0; i < 100; ++i) {
    dense.set(i, logits[4900 + i]);
  }
  Array target = Array::ids(1, 1, 1);
  Array losses(2, DType::f32);
  CrossEntropy p{.rows = 1,
                 .vocabulary = 100,
                 .logits = dense,
                 .targets = target,
                 .losses = losses.view().slice(0, 1),
                 .scale = 1};
  kernels().cross_entropy(stream_, p);
  p.vocabulary = 5000;
  p.logits = logits;
  p.losses = losses.view().slice(1, 1);
  as<std::int32_t>(target.view())[0] = 4900;
  kernels().cross_entropy(stream_, p);
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
  EXPECT_NEAR(logits[0], 0, 1e-30);
  EXPECT_NEAR(logits[4901], dense[1], 1e-7);
}

TEST_P(EachTable, IdsOutsideTheVocabularyAreRefused) {
  if (runs_on_device(kernels())) {
    GTEST_SKIP()
        << "needs kernels on the host, which can throw: see the next test for those on a device";
  }
  const Array token = Array::random(10 * 4, DType::f32, 1);
  Array out(3 * 4, DType::f32);
  Array gradient(10 * 4, DType::f32);
  Array logits(3 * 10, DType::f32);
  Array losses(3, DType::f32);
  for (const std::int32_t bad : {10, -2, 1 << 30}) {
    Array ids = Array::ids(3, 10, 1);
    as<std::int32_t>(ids.view())[2] = bad;
    EXPECT_THROW(
        kernels().embedding_forward(
            stream_,
            {.batch = 1, .time = 3, .channels = 4, .out = out, .ids = ids, .token = token}),
        InternalError);
    EXPECT_THROW(
        kernels().embedding_backward(
            stream_,
            {.batch = 1, .time = 3, .channels = 4, .dout = out, .ids = ids, .dtoken = gradient}),
        InternalError);
    EXPECT_THROW(
        kernels().cross_entropy(
            stream_,
            {.rows = 3, .vocabulary = 10, .logits = logits, .targets = ids, .losses = losses}),
        InternalError);
  }
}

// A kernel on a device cannot throw: it leaves memory alone, and NaN shows the mistake.
TEST_P(EachTable, IdsOutsideTheVocabularyBecomeNanOnADevice) {
  if (!runs_on_device(kernels())) {
    GTEST_SKIP() << "needs kernels on a device: see the previous test for those on the host";
  }
  const Array token = Array::random(10 * 4, DType::f32, 1);
  for (const std::int32_t bad : {10, -2, 1 << 30}) {
    Array ids = Array::ids(3, 10, 1);
    as<std::int32_t>(ids.view())[2] = bad;
    Array out(3 * 4, DType::f32);
    kernels().embedding_forward(
        stream_, {.batch = 1, .time = 3, .channels = 4, .out = out, .ids = ids, .token = token});
    EXPECT_FALSE(std::isnan(out[7]));
    EXPECT_TRUE(std::isnan(out[8]) && std::isnan(out[11]));
    const Array dout = Array::random(3 * 4, DType::f32, 2);
    Array gradient(10 * 4, DType::f32);
    kernels().embedding_backward(
        stream_,
        {.batch = 1, .time = 3, .channels = 4, .dout = dout, .ids = ids, .dtoken = gradient});
    Array logits = Array::random(3 * 10, DType::f32, 3);
    Array losses(3, DType::f32);
    kernels().cross_entropy(
        stream_, {.rows = 3, .vocabulary = 10, .logits = logits, .targets = ids, .losses = losses});
    EXPECT_FALSE(std::isnan(losses[1]) || std::isnan(logits[19]));
    EXPECT_TRUE(std::isnan(losses[2]) && std::isnan(logits[20]));
  }
}

// The gradients of a row are probabilities, minus 1 for the target, so their sum is zero.
TEST_P(EachTable, TheGradientOfTheLossSumsToZero) {
  Array logits = Array::random(50257, DType::f32, 1, 3);
  const Array targets = Array::ids(1, 50257, 2);
  Array loss(1, DType::f32);
  kernels().cross_entropy(stream_, {.rows = 1,
                                    .vocabulary = 50257,
                                    .logits = logits,
                                    .targets = targets,
                                    .losses = loss,
                                    .scale = 1});
  double sum = 0;
  for (std::int64_t i = 0; i < logits.count(); ++i) {
    sum += logits[i];
  }
  EXPECT_NEAR(sum, 0, 1e-6);
}

// In the first step m / (1 - beta1) = g and v / (1 - beta2) = g^2, so the step is lr g / (|g| +
// eps).
TEST_P(EachTable, TheFirstStepOfAdamWHasTheLengthOfTheRate) {
  Array value = of({1, 2, -3, 4, 5});
  const Array gradient = of({0.5, -0.25, 8, -1e-4, 0});
  Array m(5, DType::f32);
  Array v(5, DType::f32);
  kernels().adamw(stream_, {.value = value,
                            .m = m,
                            .v = v,
                            .gradient = gradient,
                            .step = 1,
                            .lr = 0.01F,
                            .weight_decay = 0.1F});
  const double expected[] = {0.999 - 0.01, 2 * 0.999 + 0.01, -3 * 0.999 - 0.01, 4 * 0.999 + 0.01,
                             5 * 0.999};
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(value[i], expected[i], 3e-6);
    EXPECT_NEAR(m[i], 0.1 * gradient[i], 1e-6);
  }
}

// A NaN gradient must stay visible; a zero gradient changes nothing.
TEST_P(EachTable, AdamWKeepsNanVisible) {
  Array value = of({1, 1});
  const Array gradient = of({kNan, 0});
  Array m(2, DType::f32);
  Array v(2, DType::f32);
  kernels().adamw(stream_, {.value = value, .m = m, .v = v, .gradient = gradient, .lr = 0.1F});
  EXPECT_TRUE(std::isnan(value[0]));
  EXPECT_EQ(value[1], 1);
}

// Checks Random123's published vector for Philox4x32-10 with key and counter 0 through the mask it
// makes.
TEST_P(EachTable, DropoutFollowsThePublishedRandomWords) {
  const PhiloxCounter published = {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8};
  const Array x = of({1, 1, 1, 1});
  for (const float probability : {0.3F, 0.5F, 0.7F, 0.8F}) {
    Array y(4, DType::f32);
    kernels().dropout(
        stream_,
        {.batch = 1, .elements_per_sample = 4, .probability = probability, .x = x, .y = y});
    for (std::int64_t i = 0; i < 4; ++i) {
      const double uniform = published[static_cast<std::size_t>(i)] / 4294967296.0;
      const double scale = 1 / (1 - static_cast<double>(probability));
      EXPECT_NEAR(y[i], uniform >= static_cast<double>(probability) ? scale : 0, 1e-6);
    }
  }
}

// In f32 the nines would vanish beside 1e14; in double the sum is exact.
TEST_P(EachTable, SumsOfSquaresAreTakenInDouble) {
  Array x(200000, DType::f32);
  kernels().fill(stream_, x, 3);
  x.set(0, 1e7);
  std::vector<double> sums(200000 / kSumBlock + 2, -1);
  const View view{sums.data(), std::ssize(sums), DType::f64};
  kernels().sums_of_squares(stream_, view, ConstView(x).slice(0, 0));
  EXPECT_EQ(sums.front(), -1) << "there is no block";
  kernels().sums_of_squares(stream_, view, x);
  EXPECT_EQ(sums.front(), 1e14 + 9.0 * (kSumBlock - 1));
  EXPECT_EQ(sums[1], 9.0 * kSumBlock);
  EXPECT_EQ(sums[200000 / kSumBlock], 9.0 * (200000 % kSumBlock));
  EXPECT_EQ(sums.back(), -1) << "behind the last block";
}

// A sum adds the elements in their order, so that every table gives the same bits.
TEST_P(EachTable, ASumIsTakenInDoubleInOrder) {
  Array x(1000, DType::f32);
  kernels().fill(stream_, x, 0.1F);
  x.set(0, 1e9);
  double expected = 0;
  for (std::int64_t i = 0; i < x.view().count; ++i) {
    expected += static_cast<double>(as<float>(x.view())[i]);
  }
  double total = -1;
  kernels().sum(stream_, {&total, 1, DType::f64}, x);
  EXPECT_EQ(total, expected);
  kernels().sum(stream_, {&total, 1, DType::f64}, ConstView(x).slice(0, 0));
  EXPECT_EQ(total, 0);
}

TEST_P(EachTable, ADigestDependsOnEveryByte) {
  for (const DType dtype : activation_types()) {
    Array x(777, dtype);
    kernels().fill(stream_, x, 1);
    std::int64_t first = 0;
    std::int64_t second = 0;
    kernels().digest(stream_, {&first, 1, DType::i64}, x);
    kernels().digest(stream_, {&second, 1, DType::i64}, x);
    EXPECT_EQ(first, second);
    x.set(776, 2);
    kernels().digest(stream_, {&second, 1, DType::i64}, x);
    EXPECT_NE(first, second);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EachTable, ::testing::ValuesIn(tables_and_reference()),
                         [](const auto& test) { return test_name(*test.param); });

}  // namespace
}  // namespace trireme::testing
