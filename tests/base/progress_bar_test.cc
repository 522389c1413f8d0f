#include "src/base/progress_bar.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/terminal.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProgressText, TellsPartAndTimeLeft) {
  EXPECT_EQ(progress_text("train", 0, 250, 1000, 50, "loss 3.2", 200),
            "train  25% |######                  | 250/1000  2m30s left  loss 3.2");
  // A resumed run estimates from what it did itself: 50 steps in 10 s, with 100 to go.
  EXPECT_THAT(progress_text("train", 850, 900, 1000, 10, "", 200), HasSubstr("20s left"));
  EXPECT_THAT(progress_text("train", 0, 1000, 1000, 10, "", 200), HasSubstr("100% |####"));
  EXPECT_THAT(progress_text("train", 0, 1000, 1000, 10, "", 200), HasSubstr("in 10s"));
}

TEST(ProgressText, OddNumbersDoNoHarm) {
  EXPECT_THAT(progress_text("x", 0, 0, 0, 0, "", 200), HasSubstr("100%"));
  EXPECT_THAT(progress_text("x", 0, 2000, 1000, 1, "", 200), HasSubstr("100%"));
  EXPECT_THAT(progress_text("x", 5, 5, 1000, 1, "", 200), Not(HasSubstr("left")));
  EXPECT_EQ(progress_text("label", 0, 5, 10, 1, "detail", 7), "");
  EXPECT_EQ(progress_text("label", 0, 5, 10, 1, "detail", -1), "");
}

TEST(ProgressText, LeavesOutWholeParts) {
  const auto text = [](int width) {
    return progress_text("train", 0, 250, 1000, 50, "loss 3.2  12k tokens/s  MFU 40%", width);
  };
  const std::string bar = "train  25% |######                  | 250/1000  2m30s left";
  EXPECT_EQ(text(80), bar + "  loss 3.2");
  EXPECT_EQ(text(82), bar + "  loss 3.2  12k tokens/s");
  EXPECT_EQ(text(81), bar + "  loss 3.2");
  EXPECT_EQ(text(59), bar);
  EXPECT_EQ(text(40), "train  25% 250/1000  2m30s left");
  EXPECT_EQ(text(50), "train  25% 250/1000  2m30s left  loss 3.2");
  EXPECT_EQ(text(20), "");
}

// The launcher at the other end of the pipe has a terminal.
TEST(ProgressBar, IsDrawnWhereALauncherHasATerminal) {
  ASSERT_EQ(::setenv(kTerminalColumns, "60", 1), 0);
  testing::internal::CaptureStderr();
  {
    ProgressBar bar("train", 10);
    bar.update(4);
    bar.update(10);
  }
  const std::string seen = testing::internal::GetCapturedStderr();
  ::unsetenv(kTerminalColumns);
  EXPECT_THAT(seen, testing::StartsWith("\r\x1b[Ktrain  40% |#########               | 4/10\r"));
  EXPECT_THAT(seen, testing::EndsWith("\n"));
  EXPECT_EQ(terminal_columns(), 0);
}

TEST(ProgressBar, LeavesTheTerminalWhileItIsHidden) {
  ASSERT_EQ(::setenv(kTerminalColumns, "60", 1), 0);
  testing::internal::CaptureStderr();
  {
    ProgressBar bar("gemm", 4);
    bar.hide();  // there is nothing to remove yet
    bar.update(1);
    bar.hide();
    std::fputs("row\n", stderr);
    bar.update(2);
    bar.hide();
    bar.hide();
  }
  const std::string seen = testing::internal::GetCapturedStderr();
  ::unsetenv(kTerminalColumns);
  const std::string line = "\r\x1b[K";
  const std::string half = "############            ";
  EXPECT_THAT(seen, testing::StartsWith(line + "gemm  25% |######                  | 1/4" + line +
                                        "row\n" + line + "gemm  50% |" + half + "| 2/4"));
  EXPECT_THAT(seen, testing::EndsWith(line));
}

TEST(Terminal, BelievesNoOddWidth) {
  for (const char* word : {"", "0", "-80", "80x", "1e9", "99999999999999999999"}) {
    ASSERT_EQ(::setenv(kTerminalColumns, word, 1), 0);
    EXPECT_EQ(terminal_columns(), 0) << word;
  }
  ::unsetenv(kTerminalColumns);
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
  EXPECT_THAT(seen, testing::StartsWith("pack 100% 10/10  in "));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 1);
}

TEST(ProgressBar, PrintsTheEndOnce) {
  testing::internal::CaptureStderr();
  {
    constexpr std::chrono::milliseconds kInterval{1};
    ProgressBar bar("pack", 10, kInterval);
    bar.update(0);
    std::this_thread::sleep_for(kInterval);  // the next line is due
    bar.update(10);
  }
  const std::string seen = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), '\n'), 1) << seen;
}

}  // namespace
}  // namespace trireme
