#include "src/figures/heat_map.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::HasSubstr;

TEST(HeatMap, CellsHaveTooltipsWithTheirValues) {
  const std::string svg =
      to_svg({"a<b & c", "GB/s", {"0 n1", "1 n2"}, {std::nan(""), 1.5, 2.5, std::nan("")}});
  EXPECT_THAT(svg, HasSubstr("a&lt;b &amp; c"));
  EXPECT_THAT(svg, HasSubstr("<title>0 n1 to 1 n2: 1.5 GB/s</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>1 n2 to 1 n2: -</title>"));
  EXPECT_THAT(svg, HasSubstr("#eff3ff"));  // the colour of 0
  EXPECT_THAT(svg, HasSubstr("#08519c"));  // the colour of the largest value
  EXPECT_THAT(svg, HasSubstr("#dddddd"));
  EXPECT_THAT(to_svg({"", "", {}, {}}), HasSubstr("</svg>"));
}

// Returns the fill colour of the cell with this title.
std::string fill_of(const std::string& svg, const std::string& title) {
  const std::size_t end = svg.find("\"><title>" + title);
  return end == std::string::npos ? "" : svg.substr(end - 7, 7);
}

TEST(HeatMap, NearValuesHaveNearColours) {
  const std::string svg =
      to_svg({"", "GB/s", {"0 n1", "1 n2"}, {std::nan(""), 9.05, 9.17, std::nan("")}});
  EXPECT_EQ(fill_of(svg, "1 n2 to 0 n1: 9.17 GB/s"), "#08519c");
  EXPECT_EQ(fill_of(svg, "0 n1 to 1 n2: 9.05 GB/s"), "#0a549e");
  EXPECT_THAT(svg, HasSubstr(">0 GB/s<"));
  EXPECT_THAT(svg, HasSubstr(">9.17 GB/s<"));
}

TEST(HeatMap, ThousandsAreWrittenInFull) {
  const std::string svg = to_svg(
      {"", "us", {"0 n1", "1 n2", "2 n3"}, {0, 4005.83, 3190, 999.6, 0, 999.4, 120000, 0.0123, 0}});
  for (const char* const text : {">4006<", ">3190<", ">1000<", ">999<", ">1.2e+05<", ">0.0123<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(HeatMap, HasRoomForItsTitle) {
  const std::string title = "Bandwidth from row to column, hierarchical, 1023.9 MiB";
  const std::string svg = to_svg({title, "GB/s", {"0 n", "1 n"}, {0, 1, 1, 0}});
  const std::string width = svg.substr(svg.find("width=\"") + 7);
  EXPECT_GE(std::stod(width), 8 * static_cast<double>(title.size()) + 24);
}

}  // namespace
}  // namespace trireme
