#include "src/figures/line_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
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
constexpr double kTitleTop = 48;
constexpr double kPlainTop = 20;  // without a title
constexpr double kBottom = kHeight - 56;
constexpr double kLegendRow = 18;
constexpr double kLabelHeight = 14;
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

class Figure {
 public:
  explicit Figure(const LinePlot& plot) : plot_(plot) {
    Range x;
    Range y;
    for (const PlotSeries& series : plot.series) {
      for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
        if (std::isfinite(y_of(series.y[i]))) {
          x.include(x_of(series.x[i]));
          y.include(y_of(series.y[i]));
        }
      }
      for (const std::vector<double>* bounds : {&series.low, &series.high}) {
        for (const double each : *bounds) {
          y.include(y_of(each));
        }
      }
    }
    for (const PlotMark& level : plot.levels) {
      y.include(y_of(level.at));
    }
    x_ = x.padded(plot.log_x ? 0.03 : 0);
    y_ = y.padded(0.05);
    top_ = plot.title.empty() ? kPlainTop : kTitleTop;
  }

  std::string draw() {
    svg_.emplace(kWidth, kHeight,
                 fmt::format("font-size=\"12\" fill=\"#333\" data-frame=\"{} {} {} {}\" "
                             "data-x=\"{} {}\" data-y=\"{} {}\"",
                             kLeft, kRight, top_, kBottom, x_.low, x_.high, y_.low, y_.high));
    if (!plot_.title.empty()) {
      svg_->text((kLeft + kRight) / 2, 26, "middle", plot_.title, "font-size=\"16\"");
    }
    draw_axes();
    draw_marks();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) {
      draw_series(i);
      draw_intervals(i);
    }
    draw_legend();
    return svg_->str();
  }

 private:
  // Return a value in the scale of its axis.
  double x_of(double x) const { return plot_.log_x ? std::log10(x) : x; }
  double y_of(double y) const { return plot_.log_y ? std::log10(y) : y; }

  double across(double x) const {
    return kLeft + (x_of(x) - x_.low) / (x_.high - x_.low) * (kRight - kLeft);
  }
  double down(double y) const {
    return kBottom - (y_of(y) - y_.low) / (y_.high - y_.low) * (kBottom - top_);
  }

  static std::vector<double> ticks(const Range& range, bool is_log, int count) {
    if (!is_log) {
      return axis_ticks(range.low, range.high, count);
    }
    const double every = std::max(1.0, std::ceil((range.high - range.low) / count));
    const bool has_room = range.high - range.low < 3;  // for 2 and 5 times the powers of ten
    std::vector<double> powers;
    for (double k = std::floor(range.low); k <= range.high; k += every) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double tick = factor * std::pow(10.0, k);
        const double place = std::log10(tick);
        if (place >= range.low && place <= range.high && (factor == 1 || has_room)) {
          powers.push_back(tick);
        }
      }
    }
    if (powers.size() >= 2) {
      return powers;
    }
    std::vector<double> some;  // the range is too short for that
    for (const double tick :
         axis_ticks(std::pow(10.0, range.low), std::pow(10.0, range.high), count)) {
      if (tick > 0) {
        some.push_back(tick);
      }
    }
    return some;
  }

  // On a logarithmic axis, a few values such as numbers of nodes are labelled themselves.
  std::vector<double> x_ticks() const {
    constexpr std::size_t kMostValues = 10;
    constexpr double kLeastGap = 0.06;  // of the axis, for the label
    std::set<double> values;
    for (const PlotSeries& series : plot_.series) {
      values.insert(series.x.begin(), series.x.end());
    }
    if (!plot_.log_x || values.size() < 3 || values.size() > kMostValues || *values.begin() <= 0) {
      return ticks(x_, plot_.log_x, 8);
    }
    for (auto next = std::next(values.begin()); next != values.end(); ++next) {
      if (x_of(*next) - x_of(*std::prev(next)) < kLeastGap * (x_.high - x_.low)) {
        return ticks(x_, plot_.log_x, 8);
      }
    }
    return {values.begin(), values.end()};
  }

  void draw_axes() {
    svg_->begin_group("class=\"y-ticks\"");
    for (const double tick : ticks(y_, plot_.log_y, 6)) {
      svg_->line(kLeft, down(tick), kRight, down(tick), "class=\"grid\" stroke=\"#e5e5e5\"");
      svg_->text(kLeft - 8, down(tick) + 4, "end", tick_text(tick));
    }
    svg_->end_group();
    svg_->begin_group("class=\"x-ticks\"");
    for (const double tick : x_ticks()) {
      svg_->line(across(tick), kBottom, across(tick), kBottom + 5,
                 "class=\"axis\" stroke=\"#888\"");
      svg_->text(across(tick), kBottom + 19, "middle", tick_text(tick));
    }
    svg_->end_group();
    svg_->line(kLeft, kBottom, kRight, kBottom, "class=\"axis\" stroke=\"#888\"");
    svg_->text((kLeft + kRight) / 2, kHeight - 14, "middle", plot_.x_label);
    svg_->text(20, (top_ + kBottom) / 2, "middle", plot_.y_label,
               fmt::format("transform=\"rotate(-90 20 {:.1f})\"", (top_ + kBottom) / 2));
  }

  void draw_marks() {
    for (const PlotMark& level : plot_.levels) {
      svg_->line(kLeft, down(level.at), kRight, down(level.at),
                 "class=\"axis\" stroke=\"#888\" stroke-dasharray=\"6 4\"");
      svg_->text((kLeft + kRight) / 2, down(level.at) - 5, "middle", level.label);
    }
    std::vector<PlotMark> events = plot_.events;
    std::sort(events.begin(), events.end(),
              [](const PlotMark& a, const PlotMark& b) { return a.at < b.at; });
    double free_from = 0;  // labels are left of their lines and must not overlap
    for (const PlotMark& event : events) {
      const double x = std::clamp(across(event.at), kLeft, kRight);
      svg_->line(x, top_, x, kBottom,
                 fmt::format("class=\"event\" data-at=\"{}\" stroke=\"#b00\" "
                             "stroke-dasharray=\"2 3\"",
                             event.at));
      const double at = std::max(x - 4, free_from + kLabelHeight);
      svg_->text(at, top_ + 4, "end", event.label,
                 fmt::format("class=\"event\" data-at=\"{}\" fill=\"#b00\" "
                             "transform=\"rotate(-90 {:.1f} {:.1f})\"",
                             event.at, at, top_ + 4));
      free_from = at;
    }
  }

  // If there are more points than pixels, draws the first, lowest, highest and last point of each
  // pixel column.
  void draw_series(std::size_t index) {
    const PlotSeries& series = plot_.series[index];
    const std::size_t count = std::min(series.x.size(), series.y.size());
    std::string path;
    bool pen_down = false;
    std::size_t i = 0;
    while (i < count) {
      if (!std::isfinite(x_of(series.x[i])) || !std::isfinite(y_of(series.y[i]))) {
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
    svg_->path(path, fmt::format("class=\"series s{}\" fill=\"none\" stroke=\"{}\" "
                                 "stroke-width=\"1.6\" stroke-linejoin=\"round\" "
                                 "stroke-linecap=\"round\"{}",
                                 index % kColours.size(), series_colour(index),
                                 series.is_ideal ? " stroke-dasharray=\"5 4\"" : ""));
  }

  void draw_intervals(std::size_t index) {
    const PlotSeries& series = plot_.series[index];
    const std::size_t count = std::min({series.x.size(), series.low.size(), series.high.size()});
    const std::string look = fmt::format("class=\"series s{}\" stroke=\"{}\"",
                                         index % kColours.size(), series_colour(index));
    for (std::size_t i = 0; i < count; ++i) {
      const double x = across(series.x[i]);
      const double low = down(series.low[i]);
      const double high = down(series.high[i]);
      if (std::isfinite(x) && std::isfinite(low) && std::isfinite(high)) {
        svg_->line(x, low, x, high, look);
        svg_->line(x - 4, low, x + 4, low, look);
        svg_->line(x - 4, high, x + 4, high, look);
      }
    }
  }

  // Returns whether the lines are higher on the right, where the legend usually is.
  bool rises() const {
    double rise = 0;
    for (const PlotSeries& series : plot_.series) {
      const std::size_t count = std::min(series.x.size(), series.y.size());
      if (count > 1) {
        const double slope = down(series.y.front()) - down(series.y[count - 1]);
        rise += std::isfinite(slope) ? slope : 0;
      }
    }
    return rise > 0;
  }

  void draw_legend() {
    std::size_t longest = 0;
    for (const PlotSeries& series : plot_.series) {
      longest = std::max(longest, series.name.size());
    }
    const double x = rises() ? kLeft + 16 : kRight - 40 - 7.0 * static_cast<double>(longest);
    for (std::size_t i = 0; i < plot_.series.size() && plot_.series.size() > 1; ++i) {
      const double y = top_ + 14 + kLegendRow * static_cast<double>(i);
      svg_->line(x, y - 4, x + 24, y - 4,
                 fmt::format("class=\"series s{}\" stroke=\"{}\" stroke-width=\"2.5\"{}",
                             i % kColours.size(), series_colour(i),
                             plot_.series[i].is_ideal ? " stroke-dasharray=\"5 4\"" : ""));
      svg_->text(x + 32, y, "start", plot_.series[i].name);
    }
  }

  const LinePlot& plot_;
  double top_ = kTitleTop;
  Range x_;
  Range y_;
  std::optional<Svg> svg_;  // made once the ranges are known
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

std::string tick_text(double value) {
  const double size = std::abs(value);
  return size >= 1e9   ? fmt::format("{:.4g}G", value / 1e9)
         : size >= 1e6 ? fmt::format("{:.4g}M", value / 1e6)
         : size >= 1e4 ? fmt::format("{:.4g}k", value / 1e3)
                       : fmt::format("{:.4g}", value);
}

std::string_view series_colour(std::size_t index) { return kColours[index % kColours.size()]; }

std::string to_svg(const LinePlot& plot) { return Figure(plot).draw(); }

}  // namespace trireme
