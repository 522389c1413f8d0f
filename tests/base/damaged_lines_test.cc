#include "src/base/damaged_lines.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using ::testing::ElementsAre;

TEST(DamagedLines, AreNumberedFromTheBeginningOfTheText) {
  std::vector<std::string> seen;
  const auto use = [&](std::string_view line) {
    seen.emplace_back(line);
    return line.starts_with("good");
  };
  const DamagedLines damaged = use_lines("good 1\n\nbad\ngood 2\nbad, but being written", use);
  EXPECT_THAT(seen, ElementsAre("good 1", "", "bad", "good 2", "bad, but being written"));
  EXPECT_EQ(damaged.count, 2);
  EXPECT_EQ(damaged.first, 2);
  EXPECT_TRUE(damaged.last_is_unfinished);
  EXPECT_EQ(damaged.to_text(), "2 damaged lines (the first is line 2)");
  EXPECT_EQ(use_lines("bad\n", use).to_text(), "1 damaged line (line 1)");
  EXPECT_EQ(use_lines("", use).count, 0);
  EXPECT_FALSE(use_lines("bad\ngood", use).last_is_unfinished);
  const DamagedLines zeros = use_lines(std::string_view("good\n\0\0", 7), use);
  EXPECT_EQ(zeros.count, 1) << "nobody writes zeros";
  EXPECT_FALSE(zeros.last_is_unfinished);
}

TEST(DamagedLines, AWarningNamesTheFileAndIsPrintable) {
  testing::internal::CaptureStderr();
  warn_of({.count = 1, .first = 3}, "run\x1b[2J/metrics.jsonl");
  warn_of({}, "whole/metrics.jsonl");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "trireme: run\\x1b[2J/metrics.jsonl: ignoring 1 damaged line (line 3)\n");
}

}  // namespace
}  // namespace trireme
