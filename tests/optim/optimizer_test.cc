#include "src/optim/optimizer.h"

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

// Fills every parameter's gradient with hashed values and the gaps with zeros.
void fill_gradients(const TinyModel& tiny) {
  auto* flat = as<float>(tiny.gradients.view());
  std::fill_n(flat, tiny.gradients.elements(), 0.0F);
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    for (std::int64_t i = 0; i < tiny.store[id].elements(); ++i) {
      flat[tiny.store[id].offset + i] = hashed_weight(tiny.store[id], i + 1000000);
    }
  }
}

class OptimizerTest : public testing::TestWithParam<std::string> {
 protected:
  const Kernels& kernels() const { return kernels_named(GetParam()); }
};

TEST_P(OptimizerTest, FollowsTheFormulaAndDecaysMatricesAlone) {
  TinyModel tiny(tiny_gpt2(), DType::bf16, kernels());
  fill_gradients(tiny);
  const std::vector<float> before = contents(tiny.masters->values(0));
  const std::vector<float> g = contents(tiny.gradients.view());
  Optimizer optimizer(*tiny.masters, {0.9F, 0.95F, 1e-8F, 0.1F});
  optimizer.step(0, tiny.gradients.view(), {1, 0.01F, 0.5F});
  const std::vector<float> after = contents(tiny.masters->values(0));
  for (ParameterId id = 0; id < tiny.store.count(); ++id) {
    const Parameter& p = tiny.store[id];
    EXPECT_EQ(p.decays, p.shape().rank() == 2) << p.name;
    for (std::int64_t i = 0; i < p.elements(); i += 7) {
      const auto at = static_cast<std::size_t>(p.offset + i);
      // In the first step, m / (1 - beta1) is g and v / (1 - beta2) is g^2.
      const double decayed = static_cast<double>(before[at]) * (p.decays ? 1 - 0.01 * 0.1 : 1);
      const double scaled = 0.5 * static_cast<double>(g[at]);
      const double expected = decayed - 0.01 * scaled / (std::abs(scaled) + 1e-8);
      EXPECT_NEAR(after[at], expected, 1e-6) << p.name << " " << i;
      EXPECT_NEAR(as<float>(optimizer.state(0, 0))[at], 0.1 * scaled, 1e-7);
      EXPECT_NEAR(as<float>(optimizer.state(1, 0))[at], 0.05 * scaled * scaled, 1e-7);
      EXPECT_EQ(as<bf16>(tiny.store.compute(id))[i].bits, to_bf16(after[at]).bits);
    }
  }
}

TEST_P(OptimizerTest, GapsStayZero) {
  TinyModel tiny(tiny_llama(), DType::bf16, kernels());
  fill_gradients(tiny);
  Optimizer optimizer(*tiny.masters, {});
  optimizer.step(0, tiny.gradients.view(), {1, 0.01F, 1});
  std::vector<float> values = contents(tiny.masters->values(0));
  for (const Parameter& p : tiny.store.all()) {
    std::fill_n(values.begin() + p.offset, p.elements(), 0.0F);
  }
  EXPECT_EQ(values, std::vector<float>(values.size(), 0.0F));
}

// Cuts the masters into ranges at arbitrary elements.
void check_ranges(const OptimizerOptions& options, const Kernels& kernels) {
  for (const DType compute : {DType::f32, DType::bf16}) {
    TinyModel whole(tiny_gpt2(), compute, kernels);
    TinyModel cut(tiny_gpt2(), compute, kernels);
    fill_gradients(whole);
    fill_gradients(cut);
    std::vector<HeldRange> ranges;
    for (std::int64_t first = 0; first < cut.store.flat_elements();) {
      const std::int64_t n =
          std::min<std::int64_t>(100 + 37 * std::ssize(ranges), cut.store.flat_elements() - first);
      ranges.push_back({first, cut.store.working_copies().slice(first, n)});
      first += n;
    }
    MasterWeights parts(cut.store, ranges);
    Optimizer optimize_whole(*whole.masters, options);
    Optimizer optimize_cut(parts, options);
    for (int range = 0; range < parts.ranges(); ++range) {
      const std::vector<float> start = contents(cut.masters->values(0).slice(
          ranges[static_cast<std::size_t>(range)].first, parts.values(range).count));
      std::copy(start.begin(), start.end(), as<float>(parts.values(range)));
    }
    optimize_whole.start_average();
    optimize_cut.start_average();
    for (std::int64_t step = 1; step <= 3; ++step) {
      const OptimizerUpdate update{step, 0.01F, 1};
      optimize_whole.step(0, whole.gradients.view(), update);
      for (int range = 0; range < parts.ranges(); ++range) {
        const HeldRange& held = parts.held(range);
        optimize_cut.step(range, cut.gradients.view().slice(held.first, held.working_copies.count),
                          update);
      }
    }
    for (int range = 0; range < parts.ranges(); ++range) {
      const HeldRange& held = parts.held(range);
      const auto same_part = [&](const View& view) {
        return contents(view.slice(held.first, held.working_copies.count));
      };
      EXPECT_EQ(contents(parts.values(range)), same_part(whole.masters->values(0)));
      for (int state = 0; state < options.states(); ++state) {
        EXPECT_EQ(contents(optimize_cut.state(state, range)),
                  same_part(optimize_whole.state(state, 0)));
      }
    }
    EXPECT_EQ(std::memcmp(whole.store.working_copies().data, cut.store.working_copies().data,
                          static_cast<std::size_t>(whole.store.working_copies().bytes())),
              0);
  }
}

TEST_P(OptimizerTest, RangesAddUpToTheWhole) {
  check_ranges({}, kernels());
  check_ranges({.kind = OptimizerKind::sgd, .nesterov = true}, kernels());
  check_ranges({.kind = OptimizerKind::adamw, .ema = 0.9F}, kernels());
  check_ranges({.kind = OptimizerKind::sgd, .ema = 0.2F}, kernels());
}

// Compares three steps with the formula written out in double.
TEST_P(OptimizerTest, SgdFollowsItsFormula) {
  for (const bool nesterov : {false, true}) {
    TinyModel tiny(tiny_gpt2(), DType::bf16, kernels());
    fill_gradients(tiny);
    const std::vector<float> g = contents(tiny.gradients.view());
    const std::vector<float> before = contents(tiny.masters->values(0));
    Optimizer optimizer(
        *tiny.masters,
        {.weight_decay = 0.1F, .kind = OptimizerKind::sgd, .momentum = 0.8F, .nesterov = nesterov});
    EXPECT_EQ(optimizer.options().states(), 1);
    EXPECT_EQ(optimizer.state_name(0, tiny.store[0]), "optimizer.momentum");
    for (std::int64_t step = 1; step <= 3; ++step) {
      optimizer.step(0, tiny.gradients.view(), {step, 0.01F, 0.5F});
    }
    const std::vector<float> after = contents(tiny.masters->values(0));
    for (const Parameter& p : tiny.store.all()) {
      for (std::int64_t i = 0; i < p.elements(); i += 7) {
        const auto at = static_cast<std::size_t>(p.offset + i);
        double x = before[at];
        double buffer = 0;
        for (int step = 0; step < 3; ++step) {
          const double scaled = 0.5 * static_cast<double>(g[at]);
          buffer = 0.8 * buffer + scaled;
          x *= p.decays ? 1 - 0.01 * 0.1 : 1;
          x -= 0.01 * (nesterov ? scaled + 0.8 * buffer : buffer);
        }
        EXPECT_NEAR(after[at], x, 1e-6) << p.name << " " << i;
        EXPECT_NEAR(as<float>(optimizer.state(0, 0))[at], buffer, 1e-6);
      }
    }
  }
}

// Parameters that are not matrices inside a layer are updated as with AdamW, wherever their state
// lies.
TEST_P(OptimizerTest, MuonKeepsNoSecondMomentOfItsMatrices) {
  TinyModel muon(tiny_gpt2(), DType::bf16, kernels());
  TinyModel adamw(tiny_gpt2(), DType::bf16, kernels());
  fill_gradients(muon);
  fill_gradients(adamw);
  const OptimizerOptions options{.kind = OptimizerKind::muon, .ema = 0.5F};
  Optimizer of_muon(*muon.masters, options);
  Optimizer of_adamw(*adamw.masters, {.ema = 0.5F});
  std::int64_t matrices = 0;
  for (const Parameter& p : muon.store.all()) {
    matrices += p.hidden ? p.elements() : 0;
  }
  EXPECT_GT(matrices, 0);
  EXPECT_EQ(of_muon.state_elements(), of_adamw.state_elements() - matrices);
  EXPECT_EQ(of_muon.state_elements(), options.state_elements(muon.store, muon.masters->elements()));
  for (std::int64_t step = 1; step <= 2; ++step) {
    of_muon.step(0, muon.gradients.view(), {step, 0.01F, 1});
    of_adamw.step(0, adamw.gradients.view(), {step, 0.01F, 1});
  }
  for (const Parameter& p : muon.store.all()) {
    EXPECT_EQ(of_muon.state_name(1, p).empty(), p.hidden);
    for (const int state : {0, 1, 2}) {
      if (!p.hidden) {
        EXPECT_EQ(contents(of_muon.state(state, 0, p.offset, p.elements())),
                  contents(of_adamw.state(state, 0, p.offset, p.elements())))
            << p.name << " " << state;
      }
    }
  }
}

TEST_P(OptimizerTest, TheAverageFollowsTheWeights) {
  TinyModel tiny(tiny_llama(), DType::bf16, kernels());
  fill_gradients(tiny);
  Optimizer optimizer(*tiny.masters, {.ema = 0.25F});
  EXPECT_EQ(optimizer.options().states(), 3);
  EXPECT_EQ(optimizer.state_name(2, tiny.store[0]), kAverageName);
  optimizer.start_average();
  std::vector<float> average = contents(tiny.masters->values(0));
  EXPECT_EQ(contents(optimizer.state(2, 0)), average);
  for (std::int64_t step = 1; step <= 4; ++step) {
    optimizer.step(0, tiny.gradients.view(), {step, 0.01F, 1});
    const std::vector<float> now = contents(tiny.masters->values(0));
    // The decay is 2/11, then 3/12, and 0.25 from then on.
    const double decay =
        std::min(0.25, (1.0 + static_cast<double>(step)) / (10.0 + static_cast<double>(step)));
    for (std::size_t i = 0; i < now.size(); ++i) {
      average[i] = static_cast<float>(decay * static_cast<double>(average[i]) +
                                      (1 - decay) * static_cast<double>(now[i]));
      ASSERT_NEAR(as<float>(optimizer.state(2, 0))[i], average[i], 1e-6) << i;
    }
  }
}

// Every third weight is zero, in matrices and in vectors.
TEST_P(OptimizerTest, KeepsTheZerosOfMatricesAlone) {
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::muon}) {
    TinyModel tiny(tiny_gpt2(), DType::bf16, kernels());
    auto* const values = as<float>(tiny.masters->values(0));
    for (const Parameter& p : tiny.store.all()) {
      for (std::int64_t i = 0; i < p.elements(); i += 3) {
        values[p.offset + i] = 0;
      }
    }
    Optimizer optimizer(*tiny.masters, {.kind = kind, .ema = 0.5F, .keep_zeros = true});
    optimizer.start_average();
    for (std::int64_t step = 1; step <= 3; ++step) {
      fill_gradients(tiny);
      optimizer.keep_zeros(0, tiny.gradients.view());
      optimizer.step(0, tiny.gradients.view(), {step, 0.01F, 1});
    }
    const auto* const gradients = as<float>(tiny.gradients.view());
    for (ParameterId id = 0; id < tiny.store.count(); ++id) {
      const Parameter& p = tiny.store[id];
      for (std::int64_t i = 0; i < p.elements(); ++i) {
        const bool is_kept = p.shape().rank() == 2 && i % 3 == 0;
        ASSERT_EQ(values[p.offset + i] == 0, is_kept) << p.name << " " << i;
        ASSERT_EQ(gradients[p.offset + i] == 0, is_kept) << p.name << " " << i;
        ASSERT_EQ((as<bf16>(tiny.store.compute(id))[i].bits & 0x7FFF) == 0, is_kept);
        for (int state = 0; state < optimizer.options().states(); ++state) {
          if (!optimizer.state_name(state, p).empty()) {
            ASSERT_EQ(as<float>(optimizer.state(state, 0, p.offset + i, 1))[0] == 0, is_kept)
                << p.name << " " << i << " " << state;
          }
        }
      }
    }
  }
}

TEST_P(OptimizerTest, KeepsNothingUnlessAsked) {
  TinyModel tiny(tiny_llama(), DType::f32, kernels());
  fill_gradients(tiny);
  const std::vector<float> before = contents(tiny.gradients.view());
  as<float>(tiny.masters->values(0))[0] = 0;
  Optimizer(*tiny.masters, {}).keep_zeros(0, tiny.gradients.view());
  EXPECT_EQ(contents(tiny.gradients.view()), before);
}

// A range may begin and end within matrices.
TEST_P(OptimizerTest, KeepsTheZerosOfEachRange) {
  TinyModel tiny(tiny_gpt2(), DType::f32, kernels());
  fill_gradients(tiny);
  auto* const values = as<float>(tiny.masters->values(0));
  for (std::int64_t i = 0; i < tiny.store.flat_elements(); i += 2) {
    values[i] = 0;
  }
  const Tensor whole = tiny.gradients;
  std::vector<float> cut = contents(whole.view());
  Optimizer(*tiny.masters, {.keep_zeros = true}).keep_zeros(0, whole.view());
  std::vector<HeldRange> ranges;
  for (std::int64_t first = 0; first < tiny.store.flat_elements();) {
    const std::int64_t n =
        std::min<std::int64_t>(101 + 37 * std::ssize(ranges), tiny.store.flat_elements() - first);
    ranges.push_back({first, tiny.store.working_copies().slice(first, n)});
    first += n;
  }
  MasterWeights parts(tiny.store, ranges);  // f32 working copies are the masters
  const Optimizer optimizer(parts, {.keep_zeros = true});
  for (int range = 0; range < parts.ranges(); ++range) {
    const HeldRange& held = parts.held(range);
    optimizer.keep_zeros(range,
                         View{cut.data() + held.first, held.working_copies.count, DType::f32});
  }
  EXPECT_EQ(cut, contents(whole.view()));
}

TEST_P(OptimizerTest, GradientNormIsThatOfAllParameters) {
  TinyModel tiny(tiny_llama(), DType::f32, kernels());
  fill_gradients(tiny);
  double squares = 0;
  for (const float g : contents(tiny.gradients.view())) {
    squares += std::pow(g, 2);
  }
  EXPECT_NEAR(gradient_norm(tiny.store, tiny.gradients.view()), std::sqrt(squares), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Tables, OptimizerTest, testing::ValuesIn(kernel_tables()),
                         [](const auto& instance) { return instance.param; });

TEST(OptimizerOptions, RefusesWhatMeansNothing) {
  EXPECT_THROW((OptimizerOptions{.momentum = 1.0F}).validate(), ConfigError);
  EXPECT_THROW((OptimizerOptions{.ema = 1.0F}).validate(), ConfigError);
  EXPECT_THROW((OptimizerOptions{.ema = -0.1F}).validate(), ConfigError);
  EXPECT_THROW((OptimizerOptions{.momentum = 0, .nesterov = true}).validate(), ConfigError);
  EXPECT_THROW((void)parse_optimizer("adam"), ConfigError);
  EXPECT_NO_THROW(OptimizerOptions{}.validate());
  EXPECT_THROW((OptimizerOptions{1.0F, 0.95F, 1e-8F, 0}).validate(), ConfigError);
  EXPECT_THROW((OptimizerOptions{0.9F, -0.1F, 1e-8F, 0}).validate(), ConfigError);
  EXPECT_THROW((OptimizerOptions{0.9F, 0.95F, 0, 0}).validate(), ConfigError);
  EXPECT_THROW((OptimizerOptions{0.9F, 0.95F, 1e-8F, -1}).validate(), ConfigError);
}

TEST(ClipFactor, ShrinksLongGradientsAlone) {
  EXPECT_DOUBLE_EQ(clip_factor(0.5, 1), 1);
  EXPECT_NEAR(clip_factor(4, 1), 0.25, 1e-6);
  EXPECT_DOUBLE_EQ(clip_factor(4, 0), 1);
}

}  // namespace
}  // namespace trireme
