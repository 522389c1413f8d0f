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

#include "src/figures/legend.h"
#include "src/figures/svg.h"

namespace trireme {
namespace {

// The layout of a figure, in pixels. Its height grows with the legend.
constexpr double kWidth = 800;
constexpr double kHeight = 480;  // without a legend
constexpr double kLeft = 72;
constexpr double kRight = kWidth - 24;
constexpr double kTitleTop = 48;
constexpr double kPlainTop = 20;    // without a title
constexpr double kLegendRise = 10;  // of the legend above where the plot would begin
constexpr double kBelow = 56;       // from the axis to the lower edge
constexpr double kLabelHeight = 14;
constexpr std::string_view kIdealDash = "5 4";
constexpr std::array<std::string_view, kSeriesStyles> kColours = {
    "#0072b2", "#c24b00", "#00805c", "#a8487f", "#946200", "#3a3a3a", "#6a51c9", "#b0122f"};
// The first eight lines differ in their dashes, too, for readers who see no colours, and in print.
// None has the dashes of an ideal line.
constexpr std::array<std::string_view, kSeriesStyles> kDashes = {
    "", "9 3", "2 3", "10 3 2 3", "16 4", "10 3 2 3 2 3", "4 2", "16 4 4 4"};

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
    const double start = plot.title.empty() ? kPlainTop : kTitleTop;
    if (plot.series.size() > 1) {
      std::vector<std::string> names;
      for (const PlotSeries& series : plot.series) {
        names.push_back(series.name);
      }
      legend_ = legend_rows(names, kLeft, kRight, start - kLegendRise);
    }
    top_ = legend_.empty() ? start : legend_bottom(legend_, start) + kLegendRise;
    bottom_ = kHeight - kBelow + top_ - start;
  }

  std::string draw() {
    svg_.emplace(kWidth, bottom_ + kBelow,
                 fmt::format("font-size=\"12\" fill=\"#333\" data-frame=\"{} {} {} {}\" "
                             "data-x=\"{} {}\" data-y=\"{} {}\"",
                             kLeft, kRight, top_, bottom_, x_.low, x_.high, y_.low, y_.high));
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
    return bottom_ - (y_of(y) - y_.low) / (y_.high - y_.low) * (bottom_ - top_);
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
      svg_->line(across(tick), bottom_, across(tick), bottom_ + 5,
                 "class=\"axis\" stroke=\"#888\"");
      svg_->text(across(tick), bottom_ + 19, "middle", tick_text(tick));
    }
    svg_->end_group();
    svg_->line(kLeft, bottom_, kRight, bottom_, "class=\"axis\" stroke=\"#888\"");
    svg_->text((kLeft + kRight) / 2, bottom_ + kBelow - 14, "middle", plot_.x_label);
    svg_->text(20, (top_ + bottom_) / 2, "middle", plot_.y_label,
               fmt::format("transform=\"rotate(-90 20 {:.1f})\"", (top_ + bottom_) / 2));
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
      svg_->line(x, top_, x, bottom_,
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
    svg_->path(path,
               fmt::format("class=\"series s{}\" fill=\"none\" stroke=\"{}\" "
                           "stroke-width=\"1.6\" stroke-linejoin=\"round\" "
                           "stroke-linecap=\"round\"{}",
                           index % kSeriesStyles, series_colour(index), dash_attribute(index)));
  }

  std::string dash_attribute(std::size_t index) const {
    const std::string_view dash = plot_.series[index].is_ideal ? kIdealDash : series_dash(index);
    return dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dash);
  }

  void draw_intervals(std::size_t index) {
    const PlotSeries& series = plot_.series[index];
    const std::size_t count = std::min({series.x.size(), series.low.size(), series.high.size()});
    const std::string look = fmt::format("class=\"series s{}\" stroke=\"{}\"",
                                         index % kSeriesStyles, series_colour(index));
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

  void draw_legend() {
    svg_->begin_group("class=\"legend\"");
    for (std::size_t i = 0; i < legend_.size(); ++i) {
      const LegendEntry& entry = legend_[i];
      const double middle = entry.baseline() - 4;
      svg_->line(entry.x, middle, entry.sample_right(), middle,
                 fmt::format("class=\"series s{}\" stroke=\"{}\" stroke-width=\"2.5\"{}",
                             i % kSeriesStyles, series_colour(i), dash_attribute(i)));
      svg_->text(entry.text_left(), entry.baseline(), "start", entry.text);
    }
    svg_->end_group();
  }

  const LinePlot& plot_;
  std::vector<LegendEntry> legend_;  // empty for a single line
  double top_ = kTitleTop;
  double bottom_ = kHeight - kBelow;
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

std::string_view series_colour(std::size_t index) { return kColours[index % kSeriesStyles]; }

std::string_view series_dash(std::size_t index) {
  return kDashes[(index + index / kSeriesStyles) % kSeriesStyles];
}

std::string to_svg(const LinePlot& plot) { return Figure(plot).draw(); }

}  // namespace trireme
