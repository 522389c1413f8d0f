#include "src/figures/line_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include "src/figures/svg.h"

namespace trireme {
namespace {

// The layout of a figure of fixed size, in pixels.
constexpr double kWidth = 800;
constexpr double kHeight = 480;
constexpr double kLeft = 72;
constexpr double kRight = kWidth - 24;
constexpr double kTop = 48;
constexpr double kBottom = kHeight - 56;
constexpr double kLegendRow = 18;
constexpr double kLabelHeight = 14;
// Okabe and Ito (2008) chose these colours to be distinct for colour-blind readers.
constexpr std::array<std::string_view, 6> kColours = {"#0072b2", "#d55e00", "#009e73",
                                                      "#cc79a7", "#e69f00", "#56b4e9"};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    if (std::isfinite(value)) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  // Returns a range that is never empty or of zero length.
  Range padded(double part) const {
    if (!(low <= high)) {
      return {0, 1};
    }
    const double extent = high - low;
    const double pad = extent > 0 ? extent * part : std::max(std::abs(low) * 0.5, 0.5);
    return {low - pad, high + pad};
  }
};

// Formats 1000 as 1k, with few digits, so that labels stay narrow.
std::string tick_text(double value) {
  if (std::abs(value) >= 1e6) {
    return fmt::format("{:.4g}M", value / 1e6);
  }
  if (std::abs(value) >= 1e4) {
    return fmt::format("{:.4g}k", value / 1e3);
  }
  return fmt::format("{:.4g}", value);
}

class Figure {
 public:
  explicit Figure(const LinePlot& plot) : plot_(plot) {
    Range x;
    Range y;
    for (const PlotSeries& series : plot.series) {
      for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
        if (std::isfinite(series.y[i])) {
          x.include(series.x[i]);
          y.include(series.y[i]);
        }
      }
    }
    for (const PlotMark& level : plot.levels) {
      y.include(level.at);
    }
    x_ = x.padded(0);
    y_ = y.padded(0.05);
  }

  std::string draw() {
    svg_.text((kLeft + kRight) / 2, 26, "middle", plot_.title, "font-size=\"16\"");
    draw_axes();
    draw_marks();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      draw_series(plot_.series[i], kColours[i % kColours.size()]);
    }
    draw_legend();
    return svg_.str();
  }

 private:
  double across(double x) const {
    return kLeft + (x - x_.low) / (x_.high - x_.low) * (kRight - kLeft);
  }
  double down(double y) const {
    return kBottom - (y - y_.low) / (y_.high - y_.low) * (kBottom - kTop);
  }

  void draw_axes() {
    for (const double tick : axis_ticks(y_.low, y_.high, 6)) {
      svg_.line(kLeft, down(tick), kRight, down(tick), "stroke=\"#e5e5e5\"");
      svg_.text(kLeft - 8, down(tick) + 4, "end", tick_text(tick));
    }
    for (const double tick : axis_ticks(x_.low, x_.high, 8)) {
      svg_.line(across(tick), kBottom, across(tick), kBottom + 5, "stroke=\"#888\"");
      svg_.text(across(tick), kBottom + 19, "middle", tick_text(tick));
    }
    svg_.line(kLeft, kBottom, kRight, kBottom, "stroke=\"#888\"");
    svg_.text((kLeft + kRight) / 2, kHeight - 14, "middle", plot_.x_label);
    svg_.text(20, (kTop + kBottom) / 2, "middle", plot_.y_label,
              fmt::format("transform=\"rotate(-90 20 {:.1f})\"", (kTop + kBottom) / 2));
  }

  void draw_marks() {
    for (const PlotMark& level : plot_.levels) {
      svg_.line(kLeft, down(level.at), kRight, down(level.at),
                "stroke=\"#888\" stroke-dasharray=\"6 4\"");
      svg_.text((kLeft + kRight) / 2, down(level.at) - 5, "middle", level.label);
    }
    std::vector<PlotMark> events = plot_.events;
    std::sort(events.begin(), events.end(),
              [](const PlotMark& a, const PlotMark& b) { return a.at < b.at; });
    double free_from = 0;  // labels are left of their lines and must not overlap
    for (const PlotMark& event : events) {
      const double x = std::clamp(across(event.at), kLeft, kRight);
      svg_.line(x, kTop, x, kBottom, "stroke=\"#b00\" stroke-dasharray=\"2 3\"");
      const double at = std::max(x - 4, free_from + kLabelHeight);
      svg_.text(at, kTop + 4, "end", event.label,
                fmt::format("fill=\"#b00\" transform=\"rotate(-90 {:.1f} {:.1f})\"", at, kTop + 4));
      free_from = at;
    }
  }

  // If there are more points than pixels, draws the first, lowest, highest and last point of each
  // pixel column.
  void draw_series(const PlotSeries& series, std::string_view colour) {
    const std::size_t count = std::min(series.x.size(), series.y.size());
    std::string path;
    bool pen_down = false;
    std::size_t i = 0;
    while (i < count) {
      if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) {
        pen_down = false;
        ++i;
        continue;
      }
      std::size_t end = i + 1;
      std::size_t lowest = i;
      std::size_t highest = i;
      while (end < count && std::isfinite(series.y[end]) &&
             std::floor(across(series.x[end])) == std::floor(across(series.x[i]))) {
        lowest = series.y[end] < series.y[lowest] ? end : lowest;
        highest = series.y[end] > series.y[highest] ? end : highest;
        ++end;
      }
      std::array<std::size_t, 4> kept = {i, lowest, highest, end - 1};
      std::sort(kept.begin(), kept.end());
      const auto kept_end = std::unique(kept.begin(), kept.end());
      for (auto k = kept.begin(); k != kept_end; ++k) {
        path += fmt::format("{}{:.1f} {:.1f} ", pen_down ? "L" : "M", across(series.x[*k]),
                            down(series.y[*k]));
        pen_down = true;
      }
      i = end;
    }
    if (!path.empty()) {
      path.pop_back();
    }
    svg_.path(path, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" "
                                "stroke-linejoin=\"round\" stroke-linecap=\"round\"",
                                colour));
  }

  void draw_legend() {
    std::size_t longest = 0;
    for (const PlotSeries& series : plot_.series) {
      longest = std::max(longest, series.name.size());
    }
    const double x = kRight - 40 - 7.0 * static_cast<double>(longest);
    for (std::size_t i = 0; i < plot_.series.size() && plot_.series.size() > 1; ++i) {
      const double y = kTop + 14 + kLegendRow * static_cast<double>(i);
      svg_.line(x, y - 4, x + 24, y - 4,
                fmt::format("stroke=\"{}\" stroke-width=\"2.5\"", kColours[i % kColours.size()]));
      svg_.text(x + 32, y, "start", plot_.series[i].name);
    }
  }

  const LinePlot& plot_;
  Range x_;
  Range y_;
  Svg svg_{kWidth, kHeight, "font-size=\"12\" fill=\"#333\""};
};

}  // namespace

std::vector<double> axis_ticks(double low, double high, int count) {
  const double rough = (high - low) / std::max(count, 1);
  if (!(rough > 0) || !std::isfinite(rough)) {
    return {};
  }
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power * 1.0001) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (double k = first; k * step <= high + step * 1e-9 && ticks.size() < 100; k += 1) {
    ticks.push_back(k == 0 ? 0 : k * step);
  }
  return ticks;
}

std::string to_svg(const LinePlot& plot) { return Figure(plot).draw(); }

}  // namespace trireme
