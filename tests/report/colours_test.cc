// Checks that the colours of lines and bars can be told apart and stand out against the page, in
// each look of a report: light, dark and printed.
#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/figures/bar_plot.h"
#include "src/figures/line_plot.h"
#include "src/figures/texture.h"
#include "src/report/assets.h"

namespace trireme {
namespace {

using Lab = std::array<double, 3>;

// Returns red, green and blue of "#rrggbb" as linear light from 0 to 1 (IEC 61966-2-1).
std::array<double, 3> linear_light(const std::string& hex) {
  std::array<double, 3> parts{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto c = static_cast<double>(std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16)) / 255;
    parts.at(i) = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return parts;
}

double luminance(const std::string& hex) {
  const auto [r, g, b] = linear_light(hex);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

// WCAG 2.1, 1.4.11: graphics need a contrast of 3.
double contrast(const std::string& a, const std::string& b) {
  const double light = std::max(luminance(a), luminance(b));
  const double dark = std::min(luminance(a), luminance(b));
  return (light + 0.05) / (dark + 0.05);
}

// CIE 1976, white point D65.
Lab lab_of(const std::string& hex) {
  const auto [r, g, b] = linear_light(hex);
  const auto f = [](double t) {
    return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  };
  const double x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
  const double y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const double z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double difference(const std::string& a, const std::string& b) {
  const Lab x = lab_of(a);
  const Lab y = lab_of(b);
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

// Returns the values of all `mark`0, `mark`1, ... in the style sheet, in their order; a colour may
// stand once in each look.
std::vector<std::string> colours_after(const std::string& css, const std::string& mark) {
  std::vector<std::string> all;
  for (std::size_t at = css.find(mark); at != std::string::npos; at = css.find(mark, at + 1)) {
    if (std::isdigit(static_cast<unsigned char>(css[at + mark.size()])) != 0) {
      const std::size_t hash = css.find_first_of("#;}", at);
      if (css[hash] == '#') {
        all.push_back(css.substr(hash, 7));
      }
    }
  }
  return all;
}

void expect_distinct(const std::vector<std::string>& colours, const std::string& page,
                     const std::string& look) {
  constexpr double kClearlyDifferent = 20;
  for (std::size_t i = 0; i < colours.size(); ++i) {
    if (!page.empty()) {
      EXPECT_GE(contrast(colours[i], page), 3) << look << ": " << colours[i];
    }
    for (std::size_t k = 0; k < i; ++k) {
      EXPECT_GE(difference(colours[i], colours[k]), kClearlyDifferent)
          << look << ": " << colours[k] << " and " << colours[i];
    }
  }
}

TEST(Colours, LinesDifferInEveryLook) {
  std::vector<std::string> alone;
  for (std::size_t i = 0; i < kSeriesStyles; ++i) {
    alone.emplace_back(series_colour(i));
  }
  expect_distinct(alone, "#ffffff", "a figure alone");
  const std::vector<std::string> all = colours_after(std::string(kReportStyle), "--s");
  ASSERT_EQ(all.size(), 3 * kSeriesStyles) << "light, dark and print";
  const auto look = [&](std::size_t i) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i * kSeriesStyles);
    return std::vector<std::string>(first, first + static_cast<std::ptrdiff_t>(kSeriesStyles));
  };
  EXPECT_EQ(look(0), alone);
  expect_distinct(look(1), "#12161c", "dark");
  EXPECT_EQ(look(2), alone) << "print";
}

TEST(Colours, BarsDifferInTheDarkLook) {
  const std::vector<std::string> bars = colours_after(std::string(kReportStyle), "svg .c");
  ASSERT_EQ(bars.size(), 12U);
  expect_distinct(bars, "", "dark");
}

// The value of an attribute of the element in which `mark` stands.
std::string attribute_of(const std::string& svg, const std::string& mark, const std::string& name) {
  const std::size_t at = svg.find(name + "=\"", svg.find(mark)) + name.size() + 2;
  return svg.substr(at, svg.find('"', at) - at);
}

TEST(Colours, MarksStandOutAgainstTheirBarsInEveryLook) {
  BarPlot plot{"ms", std::vector<std::string>(kTextures, "part"), {{"r", {}}}};
  for (std::size_t i = 0; i < kTextures; ++i) {
    plot.rows[0].pieces.push_back({static_cast<double>(i), static_cast<double>(i + 1), i});
  }
  const std::string svg = to_svg(plot);
  const std::vector<std::string> dark = colours_after(std::string(kReportStyle), "svg .c");
  for (std::size_t i = 1; i < kTextures; ++i) {
    const std::string number = std::to_string(i) + "\"";
    const std::string bar = attribute_of(svg, "class=\"c" + number, "fill");
    const std::string ink = attribute_of(svg, "class=\"t" + number, "stroke");
    EXPECT_GE(contrast(bar, ink), 3) << "light: " << ink << " on " << bar;
    EXPECT_GE(contrast(dark[i], "#12161c"), 3) << "dark: the page on " << dark[i];
  }
  EXPECT_NE(kReportStyle.find(".textures path { stroke: var(--page); }"), std::string_view::npos);
}

}  // namespace
}  // namespace trireme
