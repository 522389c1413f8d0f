#include "src/figures/line_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

LinePlot sample() {
  LinePlot plot{"Loss", "step", "nats", {{"train", {}, {}}, {"validation", {0, 50}, {3, 2}}}};
  for (int i = 0; i < 100; ++i) {
    plot.series[0].x.push_back(i);
    plot.series[0].y.push_back(4 - 0.02 * i);
  }
  return plot;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

TEST(AxisTicks, AreRoundNumbers) {
  EXPECT_THAT(axis_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(axis_ticks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
  EXPECT_THAT(axis_ticks(2.1, 2.9, 4),
              ElementsAre(testing::DoubleNear(2.2, 1e-9), testing::DoubleNear(2.4, 1e-9),
                          testing::DoubleNear(2.6, 1e-9), testing::DoubleNear(2.8, 1e-9)));
  EXPECT_TRUE(axis_ticks(1, 1, 5).empty());
  EXPECT_TRUE(axis_ticks(0, INFINITY, 5).empty());
  EXPECT_LE(axis_ticks(1e15, 1e15 + 1, 8).size(), 100U);
}

TEST(LinePlot, DrawsEverySeriesMarkAndLabel) {
  LinePlot plot = sample();
  plot.events = {{30, "killed"}, {31, "resumed"}};
  plot.levels = {{3.5, "unigram entropy"}};
  const std::string svg = to_svg(plot);
  EXPECT_THAT(svg, testing::StartsWith("<svg xmlns="));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_EQ(count(svg, "<path "), 2U);
  for (const char* words : {">Loss<", ">step<", ">nats<", ">train<", ">validation<", ">killed<",
                            ">resumed<", ">unigram entropy<"}) {
    EXPECT_THAT(svg, HasSubstr(words));
  }
}

TEST(LinePlot, EscapesText) {
  LinePlot plot = sample();
  plot.title = "a<b> & \"c\"";
  const std::string svg = to_svg(plot);
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt; &amp; &quot;c&quot;"));
}

TEST(LinePlot, ShowsWhatXmlCannotCarryAndWhatReordersText) {
  LinePlot plot = sample();
  plot.title = "a\x01 b\x1b \xFF \xEF\xBF\xBE \xC3\xA9 \xE2\x80\xAE \xE2\x80\xA8";
  EXPECT_THAT(to_svg(plot),
              HasSubstr(">a\\x01 b\\x1b \\xff \xEF\xBF\xBD \xC3\xA9 \\u202e \\u2028<"));
}

TEST(LinePlot, LeavesGapsAtWhatIsNoNumber) {
  LinePlot plot{"t", "x", "y", {{"s", {0, 1, 2, 3, 4}, {1, 2, std::nan(""), 3, INFINITY}}}};
  const std::string svg = to_svg(plot);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  const std::string path = svg.substr(svg.find("<path d="), 100);
  EXPECT_EQ(count(path, "M"), 2U);
}

TEST(LinePlot, EmptyAndFlatDataDraw) {
  for (const LinePlot& plot :
       {LinePlot{"t", "x", "y", {}}, LinePlot{"t", "x", "y", {{"s", {}, {}}}},
        LinePlot{"t", "x", "y", {{"s", {1}, {2}}}},
        LinePlot{"t", "x", "y", {{"s", {1, 1}, {0, 0}}}},
        LinePlot{"t", "x", "y", {{"s", {0, 1}, {std::nan(""), std::nan("")}}}}}) {
    const std::string svg = to_svg(plot);
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  }
}

TEST(LinePlot, ManyPointsKeepTheirPeaksAndStaySmall) {
  LinePlot plot{"t", "x", "y", {{"s", {}, {}}}};
  for (int i = 0; i < 200000; ++i) {
    plot.series[0].x.push_back(i);
    plot.series[0].y.push_back(i == 77777 ? 100 : i % 7);
  }
  const std::string svg = to_svg(plot);
  EXPECT_LT(svg.size(), 60000U);
  // The y axis is padded by 5 % of its range, so the peak lies that far below the upper edge of the
  // 376 pixels.
  const double top = 48 + (1 - 1 / 1.1 * 1.05) * 376;
  EXPECT_THAT(svg, HasSubstr(fmt::format(" {:.1f} ", top)));
}

TEST(LinePlot, LogarithmicAxesHaveRoundNumbers) {
  LinePlot plot{"", "ranks", "tokens/s", {{"s", {1, 64}, {1000, 50000}}}, {}, {}, true, true};
  const std::string svg = to_svg(plot);
  for (const char* const tick : {">1<", ">2<", ">5<", ">10<", ">20<", ">50<", ">1000<", ">10k<"}) {
    EXPECT_THAT(svg, HasSubstr(tick)) << tick;
  }
  plot.series[0].x = {0, -1};  // they have no logarithm
  EXPECT_THAT(to_svg(plot), Not(HasSubstr("nan")));
}

TEST(LinePlot, FewValuesOnALogarithmicAxisAreLabelled) {
  LinePlot plot{"", "nodes", "y", {{"s", {1, 2, 3, 8, 64}, {1, 2, 3, 4, 5}}}, {}, {}, true, false};
  std::string svg = to_svg(plot);
  for (const char* const tick : {">1<", ">2<", ">3<", ">8<", ">64<"}) {
    EXPECT_THAT(svg, HasSubstr(tick)) << tick;
  }
  EXPECT_THAT(svg, Not(HasSubstr(">50<")));
  plot.series[0].x = {1, 2, 3, 63, 64};  // too close for labels
  EXPECT_THAT(to_svg(plot), HasSubstr(">50<"));
}

TEST(LinePlot, IntervalsAreBarsAndTheIdealLineIsDashed) {
  LinePlot plot{"", "x", "y", {{"s", {1, 2}, {5, 6}, {4, NAN}, {6, 7}}, {"i", {1, 2}, {5, 7}}}};
  plot.series[1].is_ideal = true;
  const std::string svg = to_svg(plot);
  EXPECT_EQ(count(svg, "class=\"series s0\" stroke="), 3U + 1U) << "one interval and the legend";
  EXPECT_EQ(count(svg, "stroke-dasharray=\"5 4\""), 2U);
}

// Returns the upper edge of the plot area of a figure, and the lowest place of its legend.
struct LegendRoom {
  double plot_top = 0;
  double legend_bottom = 0;
};
LegendRoom room_of(const std::string& svg) {
  LegendRoom room;
  double left = 0;
  double right = 0;
  EXPECT_EQ(std::sscanf(svg.c_str() + svg.find("data-frame=\""), "data-frame=\"%lf %lf %lf", &left,
                        &right, &room.plot_top),
            3);
  const std::size_t begin = svg.find("<g class=\"legend\"");
  const std::string legend = svg.substr(begin, svg.find("</g>", begin) - begin);
  for (std::size_t at = legend.find(" y"); at != std::string::npos;
       at = legend.find(" y", at + 1)) {
    const std::size_t quote = legend.find('"', at);
    room.legend_bottom = std::max(room.legend_bottom, std::atof(legend.c_str() + quote + 1));
  }
  return room;
}

TEST(LinePlot, TheLegendNeverCoversTheData) {
  for (const std::size_t count : {2U, 6U, 8U, 9U, 30U}) {
    for (const double slope : {-1.0, 0.0, 1.0}) {
      for (const char* const title : {"", "Title"}) {
        LinePlot plot{title, "step", "ms", {}};
        for (std::size_t i = 0; i < count; ++i) {
          plot.series.push_back(
              {fmt::format("what rank {} waited for", i), {0, 100}, {100, 100 + 90 * slope}});
        }
        const std::string svg = to_svg(plot);
        const LegendRoom room = room_of(svg);
        EXPECT_GT(room.legend_bottom, 0);
        EXPECT_LT(room.legend_bottom, room.plot_top) << count << " series";
      }
    }
  }
}

TEST(LinePlot, LinesDifferInColourAndInDashes) {
  std::set<std::string_view> colours;
  std::set<std::string_view> dashes;
  std::set<std::pair<std::string_view, std::string_view>> looks;
  for (std::size_t i = 0; i < kSeriesStyles * kSeriesStyles; ++i) {
    EXPECT_TRUE(looks.emplace(series_colour(i), series_dash(i)).second) << i;
    if (i < kSeriesStyles) {
      EXPECT_TRUE(colours.insert(series_colour(i)).second) << i;
      EXPECT_TRUE(dashes.insert(series_dash(i)).second) << i;
    }
    EXPECT_NE(series_dash(i), "5 4") << "the dashes of an ideal line";
  }
  EXPECT_EQ(series_dash(0), "");
}

}  // namespace
}  // namespace trireme
