#include "src/app/site/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Sweep, EveryCombination) {
  EXPECT_THAT(combinations({}, {}, 10), IsEmpty());
  EXPECT_THAT(combinations({"a=1,2", "b=x,[y,z]"}, {}, 10),
              ElementsAre(ElementsAre("a=1", "b=x"), ElementsAre("a=1", "b=[y,z]"),
                          ElementsAre("a=2", "b=x"), ElementsAre("a=2", "b=[y,z]")));
}

TEST(Sweep, WhatIsNone) {
  for (const char* axis : {"", "a", "=1", "a=", "a=1,", "a=,1"}) {
    EXPECT_THROW(combinations({axis}, {}, 10), ConfigError) << axis;
  }
  for (const char* twice : {"a=1,2,1", "a=1e-3,0.001", "a=1,1.0", "a=1000,1e3", "a=x,\"x\"",
                            "a=[0.9,0.95],[0.90, 0.95]"}) {
    EXPECT_THROW(combinations({twice}, {}, 10), ConfigError) << twice;  // two identical runs
  }
  // As real numbers, these two would be the same.
  EXPECT_EQ(combinations({"a=18446744073709551615,18446744073709551614"}, {}, 10).size(), 2U);
  EXPECT_THROW(combinations({"a=1,2", "b=1", "a=3,4"}, {}, 10), ConfigError);
  EXPECT_THROW(combinations({"a=1,2"}, {"b=1", "a=5"}, 10), ConfigError);
  EXPECT_EQ(combinations({"a=1,2"}, {"b=1", "aa=5"}, 10).size(), 2U);
  EXPECT_THROW(combinations({"a=1,2,3,4", "b=1,2,3"}, {}, 11), ConfigError);
  EXPECT_EQ(combinations({"a=1,2,3,4", "b=1,2,3"}, {}, 12).size(), 12U);
}

}  // namespace
}  // namespace trireme
