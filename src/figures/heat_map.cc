#include "src/figures/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "src/base/check.h"
#include "src/figures/svg.h"

namespace trireme {
namespace {

// Sizes in pixels.
constexpr double kMapLeft = 150;
constexpr double kTitledMapTop = 64;
constexpr double kPlainMapTop = 30;  // without a title
constexpr double kMargin = 24;
constexpr double kScaleWidth = 110;
constexpr double kScaleBar = 16;
// Generous mean width of a sans-serif character in the title.
constexpr double kTitleCharacter = 8.5;
constexpr double kLargestCell = 48;
constexpr double kSmallestCell = 6;
constexpr double kMapSize = 640;
constexpr double kTextCell = 36;   // smallest cell that shows its number
constexpr double kLabelCell = 12;  // smallest cell whose row shows its label
constexpr std::size_t kLongestLabel = 20;
constexpr int kScaleSteps = 32;
constexpr double kWhiteText = 0.8;  // of the ramp, from where white has more contrast than black

// Colours from small to large values, in equal steps of brightness (ColorBrewer's Blues, Brewer
// 2002).
constexpr std::array<SvgColour, 5> kRamp = {
    {{239, 243, 255}, {189, 215, 231}, {107, 174, 214}, {49, 130, 189}, {8, 81, 156}}};

std::string colour_at(double part) {
  const double place = std::clamp(part, 0.0, 1.0) * (kRamp.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), kRamp.size() - 2);
  return mixed_colour(kRamp.at(low), kRamp.at(low + 1), place - static_cast<double>(low));
}

// Three digits, but thousands in full: with an exponent, the number would be wider than its cell.
std::string cell_text(double value) {
  const double size = std::abs(value);
  return size >= 999.5 && size < 99999.5 ? fmt::format("{:.0f}", value)
                                         : fmt::format("{:.3g}", value);
}

class Drawing {
 public:
  explicit Drawing(const HeatMap& map)
      : map_(map), n_(map.labels.size()), top_(map.title.empty() ? kPlainMapTop : kTitledMapTop) {
    check(map.values.size() == n_ * n_, "a heat map has one value per cell");
    for (const double value : map.values) {
      if (std::isfinite(value)) {
        any_ = true;
        low_ = std::min(low_, value);
        high_ = std::max(high_, value);
      }
    }
    const auto cells = static_cast<double>(n_);
    cell_ = std::clamp(kMapSize / std::max(cells, 1.0), kSmallestCell, kLargestCell);
    side_ = std::max(cell_ * cells, 160.0);
    const double title_width = kTitleCharacter * static_cast<double>(map_.title.size());
    svg_ = Svg(std::max(kMapLeft + side_ + kScaleWidth + kMargin, title_width + 2 * kMargin),
               top_ + side_ + kMargin, "font-size=\"11\"");
  }

  std::string draw() {
    if (!map_.title.empty()) {
      svg_.text(kMargin, 24, "start", map_.title, "font-size=\"15\"");
    }
    for (std::size_t row = 0; row < n_; ++row) {
      names(row);
      for (std::size_t column = 0; column < n_; ++column) {
        draw_cell(row, column);
      }
    }
    if (any_) {
      scale(kMapLeft + side_ + kMargin);
    }
    return svg_.str();
  }

 private:
  double part(double value) const { return high_ > low_ ? (value - low_) / (high_ - low_) : 1; }

  void names(std::size_t i) {
    if (cell_ < kLabelCell) {
      return;
    }
    const double middle = (static_cast<double>(i) + 0.5) * cell_;
    const std::string label = map_.labels[i].substr(0, kLongestLabel);
    svg_.text(kMapLeft - 6, top_ + middle + 4, "end", label);
    svg_.text(kMapLeft + middle, top_ - 6, "middle", label.substr(0, label.find(' ')));
  }

  void draw_cell(std::size_t row, std::size_t column) {
    const double value = map_.values[row * n_ + column];
    const double x = kMapLeft + static_cast<double>(column) * cell_;
    const double y = top_ + static_cast<double>(row) * cell_;
    const bool known = std::isfinite(value);
    svg_.box(x, y, cell_, cell_,
             fmt::format("fill=\"{}\"", known ? colour_at(part(value)) : "#dddddd"),
             fmt::format("{} to {}: {}", map_.labels[row], map_.labels[column],
                         known ? fmt::format("{:.4g} {}", value, map_.value_label) : "-"));
    if (known && cell_ >= kTextCell) {
      svg_.text(x + cell_ / 2, y + cell_ / 2 + 4, "middle", cell_text(value),
                part(value) > kWhiteText ? "fill=\"white\"" : "fill=\"black\"");
    }
  }

  // Draws the scale of colours from the lowest to the highest value, to the right of the map.
  void scale(double x) {
    constexpr double kPart = 1.0 / kScaleSteps;
    for (int step = 0; step < kScaleSteps; ++step) {
      const double to = kPart * (step + 1);
      svg_.box(x, top_ + (1 - to) * side_, kScaleBar, kPart * side_ + 0.5,
               fmt::format("fill=\"{}\"", colour_at(kPart * step)));
    }
    const auto label = [&](double y, double value) {
      svg_.text(x + kScaleBar + 6, y, "start",
                fmt::format("{} {}", cell_text(value), map_.value_label));
    };
    label(top_ + 9, high_);
    label(top_ + side_, low_);
  }

  const HeatMap& map_;
  std::size_t n_;
  double top_;                  // where the cells begin
  double cell_ = kLargestCell;  // size of a cell
  double side_ = 0;             // size of the map
  // The scale begins at 0, so that differences in colour are proportional to differences in value.
  double low_ = 0;
  double high_ = 0;
  bool any_ = false;
  Svg svg_{0, 0, ""};
};

}  // namespace

std::string to_svg(const HeatMap& map) { return Drawing(map).draw(); }

}  // namespace trireme
