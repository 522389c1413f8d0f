#include "src/optim/adamw.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/optim/gradient_norm.h"
#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

std::vector<float> contents(const View& view) {
  const auto* x = as<float>(view);
  return {x, x + view.count};
}

// A hashed gradient for every parameter, zeros in the gaps.
void fill_gradients(const TinyModel& tiny) {
  auto* flat = as<float>(tiny.gradients.view());
  std::fill_n(flat, tiny.gradients.elements(), 0.0F);
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    for (std::int64_t i = 0; i < tiny.store[id].elements(); ++i) {
      flat[tiny.store[id].offset + i] = hashed_weight(tiny.store[id], i + 1000000);
    }
  }
}

class AdamWTest : public testing::TestWithParam<std::string> {
 protected:
  const Kernels& kernels() const { return kernels_named(GetParam()); }
};

TEST_P(AdamWTest, FollowsTheFormulaAndDecaysMatricesAlone) {
  TinyModel tiny(tiny_gpt2(), DType::bf16, kernels());
  fill_gradients(tiny);
  const std::vector<float> before = contents(tiny.masters->values(0));
  const std::vector<float> g = contents(tiny.gradients.view());
  AdamWOptimizer optimizer(*tiny.masters, {0.9F, 0.95F, 1e-8F, 0.1F});
  optimizer.step(0, tiny.gradients.view(), {1, 0.01F, 0.5F}, kernels(), tiny.stream);
  const std::vector<float> after = contents(tiny.masters->values(0));
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    const Parameter& p = tiny.store[id];
    EXPECT_EQ(p.decays, p.shape().rank() == 2) << p.name;
    for (std::int64_t i = 0; i < p.elements(); i += 7) {
      const auto at = static_cast<std::size_t>(p.offset + i);
      // The first step's m / (1 - beta1) is g, v / (1 - beta2) is g^2.
      const double decayed = static_cast<double>(before[at]) * (p.decays ? 1 - 0.01 * 0.1 : 1);
      const double scaled = 0.5 * static_cast<double>(g[at]);
      const double expected = decayed - 0.01 * scaled / (std::abs(scaled) + 1e-8);
      EXPECT_NEAR(after[at], expected, 1e-6) << p.name << " " << i;
      EXPECT_NEAR(as<float>(optimizer.m(0))[at], 0.1 * scaled, 1e-7);
      EXPECT_NEAR(as<float>(optimizer.v(0))[at], 0.05 * scaled * scaled, 1e-7);
      EXPECT_EQ(as<bf16>(tiny.store.compute(id))[i].bits, to_bf16(after[at]).bits);
    }
  }
}

TEST_P(AdamWTest, GapsStayZero) {
  TinyModel tiny(tiny_llama(), DType::bf16, kernels());
  fill_gradients(tiny);
  AdamWOptimizer optimizer(*tiny.masters, {});
  optimizer.step(0, tiny.gradients.view(), {1, 0.01F, 1}, kernels(), tiny.stream);
  std::vector<float> values = contents(tiny.masters->values(0));
  for (const Parameter& p : tiny.store.all()) {
    std::fill_n(values.begin() + p.offset, p.elements(), 0.0F);
  }
  EXPECT_EQ(values, std::vector<float>(values.size(), 0.0F));
}

// Ranges of any size, cut anywhere.
TEST_P(AdamWTest, RangesAddUpToTheWhole) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    TinyModel whole(tiny_gpt2(), compute, kernels());
    TinyModel cut(tiny_gpt2(), compute, kernels());
    fill_gradients(whole);
    fill_gradients(cut);
    std::vector<HeldRange> ranges;
    for (std::int64_t first = 0; first < cut.store.flat_elements();) {
      const std::int64_t n =
          std::min<std::int64_t>(100 + 37 * std::ssize(ranges), cut.store.flat_elements() - first);
      ranges.push_back({first, cut.store.computes().slice(first, n)});
      first += n;
    }
    MasterWeights parts(cut.store, ranges);
    AdamWOptimizer optimize_whole(*whole.masters, {});
    AdamWOptimizer optimize_cut(parts, {});
    for (int range = 0; range < parts.ranges(); ++range) {
      const std::vector<float> start = contents(cut.masters->values(0).slice(
          ranges[static_cast<std::size_t>(range)].first, parts.values(range).count));
      std::copy(start.begin(), start.end(), as<float>(parts.values(range)));
    }
    for (std::int64_t step = 1; step <= 3; ++step) {
      const AdamWUpdate update{step, 0.01F, 1};
      optimize_whole.step(0, whole.gradients.view(), update, kernels(), whole.stream);
      for (int range = 0; range < parts.ranges(); ++range) {
        const HeldRange& held = parts.held(range);
        optimize_cut.step(range, cut.gradients.view().slice(held.first, held.computes.count),
                          update, kernels(), cut.stream);
      }
    }
    for (int range = 0; range < parts.ranges(); ++range) {
      const HeldRange& held = parts.held(range);
      const auto same_part = [&](const View& view) {
        return contents(view.slice(held.first, held.computes.count));
      };
      EXPECT_EQ(contents(parts.values(range)), same_part(whole.masters->values(0)));
      EXPECT_EQ(contents(optimize_cut.m(range)), same_part(optimize_whole.m(0)));
      EXPECT_EQ(contents(optimize_cut.v(range)), same_part(optimize_whole.v(0)));
    }
    EXPECT_EQ(std::memcmp(whole.store.computes().data, cut.store.computes().data,
                          static_cast<std::size_t>(whole.store.computes().bytes())),
              0);
  }
}

TEST_P(AdamWTest, GradientNormIsThatOfAllParameters) {
  TinyModel tiny(tiny_llama(), DType::f32, kernels());
  fill_gradients(tiny);
  double squares = 0;
  for (const float g : contents(tiny.gradients.view())) {
    squares += std::pow(g, 2);
  }
  EXPECT_NEAR(gradient_norm(tiny.store, tiny.gradients.view(), kernels(), tiny.stream),
              std::sqrt(squares), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Tables, AdamWTest, testing::ValuesIn(kernel_tables()),
                         [](const auto& instance) { return instance.param; });

TEST(AdamWOptions, RefusesWhatMeansNothing) {
  EXPECT_NO_THROW(AdamWOptions{}.validate());
  EXPECT_THROW((AdamWOptions{1.0F, 0.95F, 1e-8F, 0}).validate(), ConfigError);
  EXPECT_THROW((AdamWOptions{0.9F, -0.1F, 1e-8F, 0}).validate(), ConfigError);
  EXPECT_THROW((AdamWOptions{0.9F, 0.95F, 0, 0}).validate(), ConfigError);
  EXPECT_THROW((AdamWOptions{0.9F, 0.95F, 1e-8F, -1}).validate(), ConfigError);
}

TEST(ClipFactor, ShrinksLongGradientsAlone) {
  EXPECT_DOUBLE_EQ(clip_factor(0.5, 1), 1);
  EXPECT_NEAR(clip_factor(4, 1), 0.25, 1e-6);
  EXPECT_DOUBLE_EQ(clip_factor(4, 0), 1);
}

}  // namespace
}  // namespace trireme
