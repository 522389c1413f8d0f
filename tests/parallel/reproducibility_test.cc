#include "src/parallel/reproducibility.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::int64_t micro_batches, int dp, Reproducibility how) {
  try {
    check_reduction(micro_batches, dp, how);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CheckReduction, SaysFormulaNearestDegreeAndWayOut) {
  EXPECT_EQ(refusal(8, 4, Reproducibility::elastic), "accepted");
  EXPECT_EQ(refusal(6, 2, Reproducibility::elastic), "accepted");
  EXPECT_EQ(refusal(6, 3, Reproducibility::layout), "accepted");
  EXPECT_THAT(refusal(6, 3, Reproducibility::elastic),
              AllOf(HasSubstr("train.global_batch / train.micro_batch = 6, dp = 3"),
                    HasSubstr("power of two"), HasSubstr("use dp 2,"),
                    HasSubstr("numerics.reproducibility to layout")));
  EXPECT_THAT(refusal(24, 6, Reproducibility::elastic), HasSubstr("use dp 4 or 8,"));
  EXPECT_THAT(refusal(8, 3, Reproducibility::fast),
              AllOf(HasSubstr("8 / 3 leaves a remainder of 2"), HasSubstr("use dp 2 or 4,"),
                    HasSubstr("multiple of micro_batch x 3")));
  EXPECT_THAT(refusal(2, 4, Reproducibility::elastic), HasSubstr("use dp 2,"));
}

}  // namespace
}  // namespace trireme
