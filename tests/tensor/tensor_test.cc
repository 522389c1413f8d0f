#include "src/tensor/tensor.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

TEST(Shape, CountsAndPrints) {
  EXPECT_EQ(Shape({2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape({}).elements(), 1);
  EXPECT_EQ(Shape({5, 0}).elements(), 0);
  EXPECT_EQ(Shape({2, 3}).to_string(), "[2, 3]");
  EXPECT_EQ(Shape({2, 3})[1], 3);
  EXPECT_EQ(Shape(std::vector<std::int64_t>{2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 0}));
}

TEST(Shape, HoldsItsInvariants) {
  EXPECT_THROW(Shape({1, 1, 1, 1, 1}), InternalError);
  EXPECT_THROW(Shape({-1}), InternalError);
  EXPECT_THROW(Shape(std::vector<std::int64_t>(5, 1)), InternalError);
  EXPECT_THROW(Shape({2})[1], InternalError);
  EXPECT_THROW(Shape({2})[-1], InternalError);
}

TEST(Tensor, CopiesShareTheirStorage) {
  Pool pool(Device::cpu());
  void* data = nullptr;
  {
    Tensor a(pool, {2, 3}, DType::f32);
    data = a.view().data;
    const Tensor b = a;
    a = Tensor();
    EXPECT_TRUE(a.empty());
    EXPECT_TRUE(a.view().empty());
    EXPECT_EQ(b.view().data, data);
    EXPECT_EQ(b.view().count, 6);
    EXPECT_EQ(b.view().bytes(), 24);
    // The first tensor still holds its memory, so a new one gets other memory.
    EXPECT_NE(Tensor(pool, {2, 3}, DType::f32).view().data, data);
  }
  EXPECT_EQ(pool.peak_bytes(), 128);
}

}  // namespace
}  // namespace trireme
