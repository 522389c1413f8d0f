#include "src/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/check.h"
#include "src/base/unique_handle.h"

namespace trireme {
namespace {

// Job scripts rely on the table in docs/exit-codes.md.
TEST(Error, EachClassHasItsExitCode) {
  EXPECT_EQ(static_cast<int>(ConfigError("x").exit_code()), 2);
  EXPECT_EQ(static_cast<int>(DivergenceError("x").exit_code()), 3);
  EXPECT_EQ(static_cast<int>(DataError("x").exit_code()), 65);
  EXPECT_EQ(static_cast<int>(NotFound("x").exit_code()), 66);
  EXPECT_EQ(static_cast<int>(IoError("x").exit_code()), 74);
  EXPECT_EQ(static_cast<int>(DeviceError("x").exit_code()), 76);
  EXPECT_EQ(static_cast<int>(PolicyError("x").exit_code()), 77);
  EXPECT_EQ(static_cast<int>(CommError("x").exit_code()), 85);
  EXPECT_EQ(static_cast<int>(Hang("x").exit_code()), 85);
  EXPECT_EQ(DataError("x").kind(), "data");
}

TEST(Check, ThrowsWithThePlace) {
  check(true, "fine");
  try {
    check(false, "two is two");
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("error_test.cc"));
    EXPECT_THAT(e.what(), testing::HasSubstr("two is two"));
  }
}

struct CountingTraits {
  using Handle = int;
  static inline int closed = 0;
  static int none() { return -1; }
  static void close(int) { ++closed; }
};

TEST(UniqueHandle, ClosesOnce) {
  CountingTraits::closed = 0;
  {
    UniqueHandle<CountingTraits> a(5);
    UniqueHandle<CountingTraits> b(std::move(a));
    EXPECT_FALSE(static_cast<bool>(a));
    a = std::move(b);
    EXPECT_EQ(a.get(), 5);
    auto& same = a;
    a = std::move(same);
    EXPECT_EQ(a.get(), 5);
    EXPECT_EQ(CountingTraits::closed, 0);
    a = UniqueHandle<CountingTraits>(6);
    EXPECT_EQ(CountingTraits::closed, 1);
    UniqueHandle<CountingTraits> c(7);
    EXPECT_EQ(c.release(), 7);
  }
  EXPECT_EQ(CountingTraits::closed, 2);
}

}  // namespace
}  // namespace trireme
