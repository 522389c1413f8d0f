#include "src/nn/initial_values.h"

#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nn/layer_fixture.h"

namespace trireme {
namespace {

Parameter normal(const Place& place, float deviation = 1) {
  Parameter parameter;
  parameter.name = "w";
  parameter.place = place;
  parameter.initializer = {Initializer::Kind::normal, deviation};
  return parameter;
}

// Returns elements [first, first + count) of those that the place holds.
Floats initial(const Parameter& parameter, std::int64_t first, std::int64_t count,
               std::uint64_t seed = 1, int threads = 1) {
  DeviceContext context(kernels_named("reference"), threads);
  Floats values(static_cast<std::size_t>(count), 1000);
  set_initial_values(parameter, seed, first, {values.data(), count, DType::f32}, context);
  return values;
}

TEST(InitialValues, OfAPartAreThoseOfTheWhole) {
  const Shape whole = {7, 9};
  const Floats all = initial(normal(Place::all(whole)), 0, 63);
  for (const Place& place : {Place::of_rows(whole, {2, 3}), Place::of_columns(whole, {{4, 5}}),
                             Place::of_columns(whole, {{1, 2}, {6, 1}, {8, 1}})}) {
    const std::int64_t held = place.shape().elements();
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{1}, held / 2}) {
      const Floats part = initial(normal(place), first, held - first);
      for (const HeldRun& run : runs_of(place, first, held - first)) {
        for (std::int64_t i = 0; i < run.elements; ++i) {
          EXPECT_EQ(part[static_cast<std::size_t>(run.held_first - first + i)],
                    all[static_cast<std::size_t>(run.whole_first + i)]);
        }
      }
    }
  }
}

TEST(InitialValues, DoNotDependOnThreadsOrOnWhereTheyBegin) {
  const Parameter parameter = normal(Place::all({1003}));
  const Floats all = initial(parameter, 0, 1003);
  EXPECT_EQ(initial(parameter, 0, 1003, 1, 3), all);
  for (const std::size_t first : {1U, 2U, 3U, 4U, 5U, 501U}) {
    EXPECT_EQ(initial(parameter, static_cast<std::int64_t>(first),
                      1003 - static_cast<std::int64_t>(first)),
              Floats(all.begin() + static_cast<std::ptrdiff_t>(first), all.end()));
  }
  EXPECT_EQ(initial(parameter, 2, 1), Floats{all[2]}) << "a part of one block";
}

TEST(InitialValues, AreScaledByTheDeviation) {
  const Floats one = initial(normal(Place::all({100})), 0, 100);
  const Floats small = initial(normal(Place::all({100}), 0.25F), 0, 100);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(small[i], one[i] / 4);
  }
}

// 68.27 % of a normal distribution lie within one deviation, 99.73 % within three; neighbours are
// independent.
TEST(InitialValues, AreNormal) {
  constexpr std::int64_t kCount = 40000;
  const Floats x = initial(normal(Place::all({kCount})), 0, kCount);
  const auto within = [&](float limit) {
    return static_cast<double>(
               std::count_if(x.begin(), x.end(), [&](float v) { return std::abs(v) < limit; })) /
           kCount;
  };
  EXPECT_NEAR(within(1), 0.6827, 0.01);
  EXPECT_NEAR(within(3), 0.9973, 0.0015);
  for (std::size_t apart = 1; apart <= 4; ++apart) {
    double sum = 0;
    for (std::size_t i = 0; i + apart < x.size(); ++i) {
      sum += static_cast<double>(x[i]) * static_cast<double>(x[i + apart]);
    }
    EXPECT_NEAR(sum / kCount, 0, 0.02) << apart;
  }
}

TEST(InitialValues, MayBeConstant) {
  Parameter parameter = normal(Place::all({5}));
  parameter.initializer.kind = Initializer::Kind::ones;
  EXPECT_THAT(initial(parameter, 1, 4), testing::Each(1.0F));
  parameter.initializer.kind = Initializer::Kind::zeros;
  EXPECT_THAT(initial(parameter, 1, 4), testing::Each(0.0F));
}

}  // namespace
}  // namespace trireme
