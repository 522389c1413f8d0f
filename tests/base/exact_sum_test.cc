#include "src/base/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace trireme {
namespace {

constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double sum(const std::vector<double>& values) {
  ExactSum sum;
  for (const double x : values) {
    sum.add(x);
  }
  return sum.value();
}

void expect_bits(double got, double expected) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected))
      << got << " is not " << expected;
}

TEST(ExactSum, OneNumberComesBackAsItIs) {
  for (const double x : {0.0, 1.0, -1.0, kMax, -kMax, kTiny, -kTiny, 0x1p-1022, 0x1.8p-1050, 3e300,
                         0x1.fffffffffffffp+20, 0x1.0000000000001p-31, -1e-310}) {
    expect_bits(sum({x}), x);
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto x = std::bit_cast<double>(random());
    if (std::isfinite(x)) {
      expect_bits(sum({x}), x);
    }
  }
}

TEST(ExactSum, RoundsOnceAndTiesToEven) {
  expect_bits(sum({1, 0x1p-53}), 1);
  expect_bits(sum({1, 0x1p-53, kTiny}), 1 + 0x1p-52);
  expect_bits(sum({1, 0x1p-52, 0x1p-53}), 1 + 0x1p-51);
  expect_bits(sum({0x1p53, 1}), 0x1p53);
  expect_bits(sum({0x1p53, 3}), 0x1p53 + 4);
  expect_bits(sum({-0x1p53, -3}), -(0x1p53 + 4));
  expect_bits(sum({1, 0x1p-53, -kTiny}), 1);
  expect_bits(sum({0x1.fffffffffffffp0, 0x1p-53}), 2);
}

TEST(ExactSum, NothingIsLostToCancellation) {
  expect_bits(sum({1e300, 1, -1e300}), 1);
  expect_bits(sum({kMax, kTiny, -kMax}), kTiny);
  expect_bits(sum({kMax, kMax, -kMax}), kMax);
  expect_bits(sum({-kMax, -kMax, kMax, 1}), -kMax);
  expect_bits(sum({1e16, 1, -1e16, -1}), 0);
  EXPECT_EQ(sum({kMax, kMax}), kInfinity);
  EXPECT_EQ(sum({-kMax, -kMax}), -kInfinity);
}

// For two numbers, IEEE addition is the rounded exact sum.
TEST(ExactSum, AgreesWithTheProcessorOnPairs) {
  std::mt19937_64 random(2);
  std::uniform_int_distribution<int> exponent(-80, 80);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int i = 0; i < 20000; ++i) {
    const double a = std::ldexp(uniform(random), exponent(random));
    const double b = std::ldexp(uniform(random), exponent(random));
    expect_bits(sum({a, b}), a + b);
  }
}

TEST(ExactSum, OrderAndPartsDoNotMatter) {
  std::mt19937_64 random(3);
  std::vector<double> values;
  for (int i = 0; i < 3000; ++i) {
    const double x = std::ldexp(1.0 + static_cast<double>(random() >> 12) * 0x1p-52,
                                static_cast<int>(random() % 600) - 300);
    values.push_back(i % 3 == 0 ? -x : x);
  }
  const double expected = sum(values);
  for (int round = 0; round < 10; ++round) {
    std::shuffle(values.begin(), values.end(), random);
    expect_bits(sum(values), expected);
    std::vector<ExactSum> parts(static_cast<std::size_t>(round + 2));
    for (std::size_t i = 0; i < values.size(); ++i) {
      parts[i * i % parts.size()].add(values[i]);
    }
    ExactSum all;
    for (ExactSum& part : parts) {
      for (std::size_t i = 0; i < ExactSum::kWords; ++i) {
        all.words()[i] += part.words()[i];
      }
    }
    expect_bits(all.value(), expected);
  }
}

TEST(ExactSum, WhatIsNotFiniteStays) {
  EXPECT_TRUE(std::isnan(sum({1, std::nan(""), 2})));
  EXPECT_EQ(sum({1, kInfinity, -kMax}), kInfinity);
  EXPECT_EQ(sum({1, -kInfinity, kMax}), -kInfinity);
  EXPECT_TRUE(std::isnan(sum({kInfinity, -kInfinity})));
}

}  // namespace
}  // namespace trireme
