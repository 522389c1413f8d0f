#include "src/nn/alibi.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

// The values for 8 and 12 heads follow from the paper's rule and its published code.
TEST(AlibiSlopes, FallInPowersOfTwo) {
  const auto slopes = [](std::int64_t heads) {
    std::vector<float> all;
    for (std::int64_t head = 0; head < heads; ++head) {
      all.push_back(alibi_slope(head, heads));
    }
    return all;
  };
  const std::vector<float> of_eight = {0x1p-1F, 0x1p-2F, 0x1p-3F, 0x1p-4F,
                                       0x1p-5F, 0x1p-6F, 0x1p-7F, 0x1p-8F};
  EXPECT_EQ(slopes(8), of_eight);
  std::vector<float> of_twelve = of_eight;
  for (const float slope : {0.70710678F, 0.35355339F, 0.17677670F, 0.08838835F}) {
    of_twelve.push_back(slope);
  }
  EXPECT_THAT(slopes(12), testing::Pointwise(testing::FloatEq(), of_twelve));
  EXPECT_EQ(slopes(1), std::vector<float>{0x1p-8F});
}

}  // namespace
}  // namespace trireme
