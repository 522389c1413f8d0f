#include "src/base/progress_bar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProgressText, TellsPartAndTimeLeft) {
  EXPECT_EQ(progress_text("train", 0, 250, 1000, 50, "loss 3.2", 200),
            "train  25% |######                  | 250/1000  2m30s left  loss 3.2");
  // A resumed run judges its rate by what it did itself: 50 steps in 10 s, 100 to go.
  EXPECT_THAT(progress_text("train", 850, 900, 1000, 10, "", 200), HasSubstr("20s left"));
  EXPECT_THAT(progress_text("train", 0, 1000, 1000, 10, "", 200), HasSubstr("100% |####"));
  EXPECT_THAT(progress_text("train", 0, 1000, 1000, 10, "", 200), HasSubstr("in 10s"));
}

TEST(ProgressText, OddNumbersDoNoHarm) {
  EXPECT_THAT(progress_text("x", 0, 0, 0, 0, "", 200), HasSubstr("100%"));
  EXPECT_THAT(progress_text("x", 0, 2000, 1000, 1, "", 200), HasSubstr("100%"));
  EXPECT_THAT(progress_text("x", 5, 5, 1000, 1, "", 200), Not(HasSubstr("left")));
  EXPECT_EQ(progress_text("label", 0, 5, 10, 1, "detail", 7), "label  ");
  EXPECT_EQ(progress_text("label", 0, 5, 10, 1, "detail", -1), "");
}

TEST(ProgressBar, IsSilentWhereStderrIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    ProgressBar bar("x", 10);
    for (int i = 0; i <= 10; ++i) {
      bar.update(i);
    }
    bar.finish();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ProgressBar, PlainLinesWhereAskedFor) {
  testing::internal::CaptureStderr();
  {
    ProgressBar bar("pack", 10, std::chrono::seconds(3600));
    for (int i = 0; i <= 10; ++i) {
      bar.update(i, "shards");
    }
  }
  const std::string seen = testing::internal::GetCapturedStderr();
  EXPECT_THAT(seen, testing::StartsWith("pack 100% |"));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 1);
}

}  // namespace
}  // namespace trireme
