// Compares every entry of every table that this program tests with the reference, and with itself
// in other schedules.
#include "tests/kernels/tables.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/kernels/cases.h"

namespace trireme::testing {
namespace {

std::vector<Case> all_cases() {
  std::vector<Case> all = product_cases();
  for (const auto& more : {row_cases(), element_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// Describes the first element outside the tolerance; empty if there is none.
std::string difference(const Array& result, const Array& expected, const Tolerance& tolerance) {
  double largest = 0;
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
  }
  for (std::int64_t i = 0; i < expected.count(); ++i) {
    const double allowed =
        tolerance.relative * std::abs(expected[i]) + tolerance.absolute * largest;
    // The comparison is written so that a NaN fails.
    if (!(std::abs(result[i] - expected[i]) <= allowed)) {
      return fmt::format("element {} of {} is {}, not {} +- {}", i, expected.count(), result[i],
                         expected[i], allowed);
    }
  }
  return "";
}

class EachCase : public ::testing::TestWithParam<Case> {};

TEST_P(EachCase, AgreesWithTheReference) {
  Stream stream = test_stream(2);
  const Results expected = GetParam().run(kernels_named("reference"), stream);
  for (const Kernels* table : tables_under_test()) {
    const Results results = GetParam().run(*table, stream);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto& [what, array] = expected[i];
      const Tolerance tolerance = GetParam().tolerance(array.dtype());
      EXPECT_EQ(difference(results[i].second, array, tolerance), "") << table->name << " " << what;
    }
  }
}

TEST_P(EachCase, HasTheSameBitsInEverySchedule) {
  for (const Kernels* table : tables_under_test()) {
    Results expected;
    each_schedule([&](const std::string& schedule, Stream& stream) {
      const Results results = GetParam().run(*table, stream);
      expected = expected.empty() ? results : expected;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(results[i].second.same_bits(expected[i].second))
            << table->name << " " << expected[i].first << " with " << schedule;
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EachCase, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace trireme::testing
