#include "src/figures/bar_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "src/figures/line_plot.h"
#include "src/figures/svg.h"

namespace trireme {
namespace {

constexpr double kBarsWidth = 800;
constexpr double kBarsLeft = 132;
constexpr double kBarsRight = kBarsWidth - 24;
constexpr double kRowHeight = 22;
constexpr double kBarHeight = 16;
constexpr double kLegendHeight = 20;
constexpr double kAxisHeight = 44;
constexpr std::size_t kLongestRowLabel = 18;
// The first six are those of lines; the others are darker, so that neighbours differ.
constexpr std::array<std::string_view, 12> kBarColours = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
    "#004b76", "#8c3d00", "#00664a", "#8a4f70", "#9a6a00", "#7f7f7f"};

std::string shortened(const std::string& text) {
  return text.size() <= kLongestRowLabel ? text : text.substr(0, kLongestRowLabel - 1) + "…";
}

class BarFigure {
 public:
  explicit BarFigure(const BarPlot& plot) : plot_(plot) {
    for (const BarRow& row : plot.rows) {
      for (const BarPiece& piece : row.pieces) {
        if (std::isfinite(piece.from) && std::isfinite(piece.to)) {
          low_ = std::min(low_, piece.from);
          high_ = std::max(high_, piece.to);
          used_.insert(piece.category);
        }
      }
    }
    high_ = high_ > low_ ? high_ : low_ + 1;
    top_ = 8 + kLegendHeight * std::ceil(static_cast<double>(used_.size()) / 4);
    bottom_ = top_ + kRowHeight * static_cast<double>(plot.rows.size());
  }

  std::string draw() {
    svg_.emplace(kBarsWidth, bottom_ + kAxisHeight, "font-size=\"12\" fill=\"#333\"");
    draw_legend();
    for (const double tick : axis_ticks(low_, high_, 8)) {
      svg_->line(across(tick), top_, across(tick), bottom_, "class=\"grid\" stroke=\"#e5e5e5\"");
      svg_->text(across(tick), bottom_ + 16, "middle", tick_text(tick));
    }
    for (std::size_t i = 0; i < plot_.rows.size(); ++i) {
      draw_row(plot_.rows[i], top_ + kRowHeight * static_cast<double>(i));
    }
    svg_->line(kBarsLeft, bottom_, kBarsRight, bottom_, "class=\"axis\" stroke=\"#888\"");
    svg_->text((kBarsLeft + kBarsRight) / 2, bottom_ + 36, "middle", plot_.x_label);
    return svg_->str();
  }

 private:
  double across(double x) const {
    return kBarsLeft + (x - low_) / (high_ - low_) * (kBarsRight - kBarsLeft);
  }
  static std::string look(std::size_t category) {
    const std::size_t i = category % kBarColours.size();
    return fmt::format("class=\"c{}\" fill=\"{}\"", i, kBarColours[i]);
  }

  void draw_legend() {
    std::size_t place = 0;
    for (const std::size_t category : used_) {
      const double x = kBarsLeft + 160 * static_cast<double>(place % 4);
      const double y = 6 + kLegendHeight * static_cast<double>(place / 4);
      svg_->box(x, y, 12, 12, look(category));
      svg_->text(x + 18, y + 10, "start",
                 category < plot_.categories.size() ? plot_.categories[category] : "");
      ++place;
    }
  }

  void draw_row(const BarRow& row, double y) {
    svg_->text(kBarsLeft - 8, y + kBarHeight - 2, "end", shortened(row.label));
    for (const BarPiece& piece : row.pieces) {
      if (std::isfinite(piece.from) && std::isfinite(piece.to) && piece.to > piece.from) {
        svg_->box(across(piece.from), y + 2, std::max(across(piece.to) - across(piece.from), 0.5),
                  kBarHeight, look(piece.category), piece.tooltip);
      }
    }
  }

  const BarPlot& plot_;
  std::set<std::size_t> used_;
  double low_ = 0;
  double high_ = 0;
  double top_ = 0;
  double bottom_ = 0;
  std::optional<Svg> svg_;
};

}  // namespace

std::string to_svg(const BarPlot& plot) { return BarFigure(plot).draw(); }

}  // namespace trireme
