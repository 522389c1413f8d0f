#include "src/device/device.h"

#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

TEST(View, SlicesStayWithin) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  const View view{data, 6, DType::f32};
  const View part = view.slice(2, 3);
  EXPECT_EQ(as<float>(part)[0], 2);
  EXPECT_EQ(part.count, 3);
  EXPECT_EQ(part.bytes(), 12);
  EXPECT_EQ(view.slice(6, 0).count, 0);
  EXPECT_THROW(view.slice(4, 3), InternalError);
  EXPECT_THROW(view.slice(-1, 2), InternalError);
  EXPECT_THROW(view.slice(2, -1), InternalError);
  const ConstView constant = view;
  EXPECT_EQ(as<float>(constant.slice(5, 1))[0], 5);
  EXPECT_THROW(constant.slice(6, 1), InternalError);
}

TEST(View, IsReadAsWhatItIs) {
  std::int32_t data[2] = {1, 2};
  const View view{data, 2, DType::i32};
  EXPECT_EQ(as<std::int32_t>(view)[1], 2);
  EXPECT_THROW(as<float>(view), InternalError);
  EXPECT_THROW(as<std::uint32_t>(ConstView(view)), InternalError);
  // An empty view can be read as any type.
  EXPECT_EQ(as<float>(View{}), nullptr);
}

}  // namespace
}  // namespace trireme
