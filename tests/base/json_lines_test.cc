#include "src/base/json_lines.h"

#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

TEST(JsonLines, UseObjectsLeavesOutWhatIsNone) {
  int objects = 0;
  const DamagedLines damaged =
      use_objects("{\"a\": 1}\n[1]\n{\"b\": 1}\n{\"a\"", [&](const nlohmann::json& line) {
        ++objects;
        return line.contains("a");
      });
  EXPECT_EQ(objects, 2);
  EXPECT_EQ(damaged.count, 2);
  EXPECT_EQ(damaged.first, 2);
}

// Copying a value of this depth would use up the stack.
TEST(JsonLines, ADeepLineIsDamaged) {
  const auto nested = [](int levels) {
    const auto lists = static_cast<std::size_t>(levels - 1);
    return "{\"step\": 1, \"a\": " + std::string(lists, '[') + std::string(lists, ']') + "}\n";
  };
  const TempFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  std::ofstream(path) << nested(32) << nested(33) << nested(100'000)
                      << "{\"step\": 2, \"a\": \"\\\"" + std::string(40, '[') + "\"}\n";
  const LastLines lines = last_json_lines(path);
  EXPECT_EQ(lines.objects.size(), 2U) << "brackets in a string do not count";
  EXPECT_EQ(lines.damaged.count, 2);
  EXPECT_EQ(lines.damaged.first, 2);
}

// A file of 40 lines with a damaged one, of which only the end is read.
TEST(JsonLines, TheEndOfAFileHasTheLineNumbersOfTheWhole) {
  const TempFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  EXPECT_TRUE(last_json_lines(path).objects.empty());
  std::ofstream file(path);
  for (int line = 1; line <= 40; ++line) {
    file << (line == 7 || line == 35 ? "torn {\n" : "{\"step\": " + std::to_string(line) + "}\n");
  }
  file << "{\"step\"" << std::flush;
  const LastLines all = last_json_lines(path);
  EXPECT_EQ(all.objects.size(), 38U);
  EXPECT_EQ(all.damaged.count, 2);
  EXPECT_EQ(all.damaged.first, 7);
  const LastLines last = last_json_lines(path, 127);
  EXPECT_EQ(last.objects.back().at("step"), 40);
  EXPECT_EQ(last.damaged.count, 1);
  EXPECT_EQ(last.damaged.first, 35);
  EXPECT_TRUE(last_json_lines(path, 5).objects.empty()) << "a part of a line is none";
}

TEST(JsonLines, OnlyLinesWithAStepAreMetrics) {
  const TempFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  std::ofstream(path) << "{\"step\": 1}\n{\"loss\": 2}\n{\"step\": -1}\n{\"step\": 1.5}\n"
                         "{\"step\": \"3\"}\n{\"step\": 10000000000000000}\n{\"step\": 0}\n";
  EXPECT_EQ(last_json_lines(path).objects.size(), 7U);
  const LastLines metrics = last_json_lines(path, kLastBytes, is_metrics_line);
  EXPECT_EQ(metrics.objects.size(), 2U);
  EXPECT_EQ(metrics.damaged.count, 5);
  EXPECT_EQ(metrics.damaged.first, 2);
}

}  // namespace
}  // namespace trireme
