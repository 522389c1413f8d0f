#include "src/figures/bar_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/figures/texture.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(BarPlot, DrawsPiecesWithALegendOfThoseThatOccur) {
  const BarPlot plot{"ms",
                     {"compute", "wait", "never"},
                     {{"rank <0>", {{0, 5, 0, "a & b"}, {5, 7, 1}}}, {"rank 1", {{0, 7, 0}}}}};
  const std::string svg = to_svg(plot);
  for (const char* const words : {">compute<", ">wait<", "rank &lt;0&gt;", "a &amp; b", ">ms<"}) {
    EXPECT_THAT(svg, HasSubstr(words));
  }
  EXPECT_THAT(svg, Not(HasSubstr("never")));
}

// Colours alone do not tell categories apart on paper, and to some readers nowhere.
TEST(BarPlot, MarksTellCategoriesApartInBarsAndLegend) {
  BarPlot plot{"ms", {}, {{"r", {}}, {"s", {}}}};
  for (std::size_t i = 0; i < kTextures; ++i) {
    plot.categories.push_back("part " + std::to_string(i));
    for (BarRow& row : plot.rows) {
      row.pieces.push_back({static_cast<double>(i), static_cast<double>(i + 1), i, "piece"});
    }
  }
  const std::string svg = to_svg(plot);
  for (std::size_t i = 0; i < kTextures; ++i) {
    std::size_t paths = 0;
    const std::string mark = "class=\"t" + std::to_string(i) + "\"";
    for (std::size_t at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1)) {
      const TextureStroke& stroke = texture(i).at(paths++);
      const std::size_t begin = svg.rfind("<path d=\"", at);
      const std::string path = svg.substr(begin, svg.find("/>", at) - begin);
      EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 3)
          << "two bars and the legend: " << path;
      EXPECT_EQ(path.find("stroke-dasharray") == std::string::npos, stroke.dash.empty());
      EXPECT_THAT(path, HasSubstr(stroke.dash));
    }
    EXPECT_EQ(paths, texture(i).size()) << i;
  }
  EXPECT_THAT(svg, Not(HasSubstr(" id="))) << "names would have to be unique on a page";
}

TEST(BarPlot, OddInputMakesAPicture) {
  EXPECT_THAT(to_svg(BarPlot{"x", {}, {}}), testing::EndsWith("</svg>\n"));
  const BarPlot odd{"x", {"a"}, {{"r", {{NAN, 1, 0}, {3, 2, 0}, {0, INFINITY, 0}, {1, 2, 99}}}}};
  EXPECT_THAT(to_svg(odd), testing::AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(BarPlot, LongNamesOfCategoriesHaveRoomInTheLegend) {
  BarPlot plot{"s", {}, {{"r", {}}}};
  for (std::size_t i = 0; i < 12; ++i) {
    plot.categories.push_back("a category with a name of forty letters " + std::to_string(i));
    plot.rows[0].pieces.push_back({static_cast<double>(i), static_cast<double>(i + 1), i, "piece"});
  }
  const std::string svg = to_svg(plot);
  // One name in two fits into a row, so there are six rows of names and then the first bar.
  const std::size_t begin = svg.find("<g class=\"legend\"");
  const std::size_t end = svg.find("</g>", begin);
  ASSERT_NE(end, std::string::npos);
  EXPECT_THAT(svg.substr(begin, end - begin), HasSubstr(">" + plot.categories[11] + "<"));
  double lowest = 0;
  for (std::size_t at = svg.find(" y=\"", begin); at < end; at = svg.find(" y=\"", at + 1)) {
    lowest = std::max(lowest, std::atof(svg.c_str() + at + 4));
  }
  const std::size_t bar = svg.find("<rect", end);
  EXPECT_LT(lowest, std::atof(svg.c_str() + svg.find(" y=\"", bar) + 4));
}

}  // namespace
}  // namespace trireme
