#include "src/figures/bar_plot.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(BarPlot, OddInputMakesAPicture) {
  EXPECT_THAT(to_svg(BarPlot{"x", {}, {}}), testing::EndsWith("</svg>\n"));
  const BarPlot odd{"x", {"a"}, {{"r", {{NAN, 1, 0}, {3, 2, 0}, {0, INFINITY, 0}, {1, 2, 99}}}}};
  EXPECT_THAT(to_svg(odd), testing::AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

}  // namespace
}  // namespace trireme
