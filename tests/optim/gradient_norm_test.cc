#include "src/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

// The parameters have odd sizes. The third is joined to the second, and the fourth is a copy.
ParameterStore declare(DeviceContext& context, bool primary = true, bool trained = true) {
  ParameterStore store(context, DType::f32);
  for (const std::int64_t elements : {5000, 300, 9001, 4097, 12000}) {
    Parameter parameter;
    parameter.name = fmt::format("p{}", store.count());
    parameter.place = Place::all({elements});
    parameter.joined = store.count() == 2;
    parameter.place.primary = primary || store.count() != 3;
    parameter.trained = trained || store.count() != 3;
    store.add(std::move(parameter));
  }
  return store;
}

float value(ParameterId id, std::int64_t i) {
  const std::uint64_t bits = mix64(static_cast<std::uint64_t>(id * 100000 + i));
  return std::ldexp(static_cast<float>(bits >> 44) - 0x1p19F, static_cast<int>(bits % 40) - 20);
}

// Gaps hold NaN, which must not be read.
std::vector<float> gradients_of(const ParameterStore& store) {
  std::vector<float> flat(static_cast<std::size_t>(store.flat_elements()), NAN);
  for (ParameterId id = 0; id < store.count(); ++id) {
    for (std::int64_t i = 0; i < store[id].elements(); ++i) {
      flat[static_cast<std::size_t>(store[id].offset + i)] = value(id, i);
    }
  }
  return flat;
}

ConstView view(const std::vector<float>& x) {
  return {x.data(), static_cast<std::int64_t>(x.size()), DType::f32};
}

class GradientNormTest : public testing::Test {
 protected:
  double sum_of_ranges(const ParameterStore& store, const std::vector<float>& flat,
                       std::int64_t blocks) {
    SquareSums sums(context_);
    const std::int64_t step = blocks * kSumBlock;
    for (std::int64_t first = 0; first < store.flat_elements(); first += step) {
      const std::int64_t n = std::min(step, store.flat_elements() - first);
      sums.add(store, first, view(flat).slice(first, n));
    }
    return sums.read().value();
  }

  DeviceContext context_{Device::cpu(), 1};
};

TEST_F(GradientNormTest, IsTheRootOfTheSumOfSquares) {
  const ParameterStore store = declare(context_);
  long double sum = 0;
  for (ParameterId id = 0; id < store.count(); ++id) {
    for (std::int64_t i = 0; i < store[id].elements(); ++i) {
      sum += static_cast<long double>(value(id, i)) * static_cast<long double>(value(id, i));
    }
  }
  const double norm = gradient_norm(store, view(gradients_of(store)));
  EXPECT_NEAR(norm, static_cast<double>(std::sqrt(sum)), 1e-13 * norm);
}

TEST_F(GradientNormTest, RangesGiveTheBitsOfTheWhole) {
  const ParameterStore store = declare(context_);
  const std::vector<float> flat = gradients_of(store);
  const double whole = sum_of_ranges(store, flat, 1 << 20);
  for (const std::int64_t blocks : {1, 2, 3, 5}) {
    EXPECT_EQ(sum_of_ranges(store, flat, blocks), whole) << blocks << " blocks at a time";
  }
}

// Each stage holds its parameters in a store of its own.
TEST_F(GradientNormTest, StoresGiveTheBitsOfOne) {
  const ParameterStore store = declare(context_);
  SquareSums parts(context_);
  std::deque<std::vector<float>> kept;  // until the squares are read
  for (const auto& [begin, end] : {std::pair{3, 5}, {0, 1}, {1, 3}}) {
    ParameterStore stage(context_, DType::f32);
    for (ParameterId id = begin; id < end; ++id) {
      stage.add(store[id]);
    }
    std::vector<float>& flat =
        kept.emplace_back(static_cast<std::size_t>(stage.flat_elements()), NAN);
    for (ParameterId id = 0; id < stage.count(); ++id) {
      for (std::int64_t i = 0; i < stage[id].elements(); ++i) {
        flat[static_cast<std::size_t>(stage[id].offset + i)] = value(begin + id, i);
      }
    }
    parts.add(stage, 0, view(flat));
  }
  EXPECT_EQ(parts.read().value(), sum_of_ranges(store, gradients_of(store), 1 << 20));
}

TEST_F(GradientNormTest, LeavesOutCopies) {
  const ParameterStore store = declare(context_);
  const std::vector<float> flat = gradients_of(store);
  std::vector<float> without = flat;
  std::fill_n(without.begin() + store[3].offset, store[3].elements(), 0.0F);
  const double expected = gradient_norm(store, view(without));
  EXPECT_NE(expected, gradient_norm(store, view(flat)));
  EXPECT_EQ(gradient_norm(declare(context_, false), view(flat)), expected);
  EXPECT_EQ(gradient_norm(declare(context_, true, false), view(flat)), expected);
}

TEST_F(GradientNormTest, WhatIsNotFiniteShows) {
  const ParameterStore store = declare(context_);
  std::vector<float> flat = gradients_of(store);
  flat[static_cast<std::size_t>(store[4].offset)] = INFINITY;
  EXPECT_EQ(gradient_norm(store, view(flat)), INFINITY);
  flat[7] = NAN;
  EXPECT_TRUE(std::isnan(gradient_norm(store, view(flat))));
}

}  // namespace
}  // namespace trireme
