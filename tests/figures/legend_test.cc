#include "src/figures/legend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::EndsWith;
using testing::StartsWith;

constexpr double kLegendLeft = 72;
constexpr double kLegendRight = 776;

std::vector<std::string> names_of(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back("series " + std::string(i % 7 * 6, 'w'));
  }
  return names;
}

TEST(Legend, NoEntryCoversAnotherOrLeavesItsWidth) {
  for (const std::size_t count : {0U, 1U, 2U, 6U, 11U, 40U}) {
    const auto entries = legend_rows(names_of(count), kLegendLeft, kLegendRight, 10);
    ASSERT_EQ(entries.size(), count);
    const double bottom = legend_bottom(entries, 10);
    EXPECT_EQ(bottom > 10, count > 0);
    for (std::size_t i = 0; i < count; ++i) {
      const LegendEntry& a = entries[i];
      EXPECT_GE(a.x, kLegendLeft);
      EXPECT_LE(a.x + a.width, kLegendRight);
      EXPECT_GE(a.y, 10);
      EXPECT_LE(a.y + kLegendRowHeight, bottom);
      EXPECT_LT(a.baseline(), a.y + kLegendRowHeight) << "text hangs below its row";
      for (std::size_t k = 0; k < i; ++k) {
        const LegendEntry& b = entries[k];
        EXPECT_TRUE(a.y != b.y || b.x + b.width <= a.x) << k << " and " << i;
      }
    }
  }
}

TEST(Legend, VeryLongNamesAreCutBetweenCharacters) {
  std::string umlauts;
  for (int i = 0; i < 200; ++i) {
    umlauts += "ü";
  }
  const auto entries = legend_rows({umlauts, "short"}, kLegendLeft, kLegendRight, 0);
  EXPECT_THAT(entries[0].text, EndsWith("ü…"));
  EXPECT_THAT(entries[0].text, StartsWith("üüü"));
  EXPECT_LE(entries[0].x + entries[0].width, kLegendRight);
  EXPECT_EQ(entries[0].text.size() % 2, 1U) << "pairs of bytes, and three of the ellipsis";
  EXPECT_EQ(entries[1].text, "short");
  EXPECT_EQ(legend_rows({"abc"}, 0, 10, 0)[0].text, "…") << "no room at all";
}

}  // namespace
}  // namespace trireme
