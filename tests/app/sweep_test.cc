#include "src/app/site/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Sweep, EveryCombination) {
  EXPECT_THAT(combinations({}, 10), IsEmpty());
  EXPECT_THAT(combinations({"a=1,2", "b=x,[y,z]"}, 10),
              ElementsAre(ElementsAre("a=1", "b=x"), ElementsAre("a=1", "b=[y,z]"),
                          ElementsAre("a=2", "b=x"), ElementsAre("a=2", "b=[y,z]")));
}

TEST(Sweep, WhatIsNone) {
  for (const char* axis : {"", "a", "=1", "a=", "a=1,", "a=,1"}) {
    EXPECT_THROW(combinations({axis}, 10), ConfigError) << axis;
  }
  EXPECT_THROW(combinations({"a=1,2,1"}, 10), ConfigError);  // two identical runs
  EXPECT_THROW(combinations({"a=1,2,3,4", "b=1,2,3"}, 11), ConfigError);
  EXPECT_EQ(combinations({"a=1,2,3,4", "b=1,2,3"}, 12).size(), 12U);
}

}  // namespace
}  // namespace trireme
