#include "src/base/json_value.h"

#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace trireme {
namespace {

TEST(JsonValue, IsAnEmptyObjectUnlessMadeOfSomething) {
  EXPECT_EQ(JsonValue()->dump(), "{}");
  EXPECT_EQ(JsonValue(nlohmann::json{1, 2})->dump(), "[1,2]");
  EXPECT_EQ((*JsonValue::parse(R"({"a": 1})"))["a"], 1);
  EXPECT_THROW(JsonValue::parse("{"), DataError);
}

TEST(JsonValue, CopiesAreTheirOwn) {
  JsonValue one;
  JsonValue other = one;
  (*other)["a"] = 1;
  EXPECT_EQ(one->dump(), "{}");
  one = other;
  (*other)["a"] = 2;
  EXPECT_EQ(one->dump(), R"({"a":1})");
  one = std::move(other);
  EXPECT_EQ(one->dump(), R"({"a":2})");
  other = one;
  EXPECT_EQ(*other, *one);
}

}  // namespace
}  // namespace trireme
