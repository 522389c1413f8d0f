#include "benchmarks/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "src/base/check.h"
#include "src/figures/xml_text.h"

namespace trireme {
namespace {

// Sizes in pixels.
constexpr double kLeft = 150;
constexpr double kTop = 64;
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

struct Colour {
  double red, green, blue;
};
// Colours from small to large values, in equal steps of brightness (ColorBrewer's Blues, Brewer
// 2002).
constexpr std::array<Colour, 5> kRamp = {
    {{239, 243, 255}, {189, 215, 231}, {107, 174, 214}, {49, 130, 189}, {8, 81, 156}}};

std::string colour_at(double part) {
  const double place = std::clamp(part, 0.0, 1.0) * (kRamp.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), kRamp.size() - 2);
  const double rest = place - static_cast<double>(low);
  const auto mix = [rest](double a, double b) {
    return static_cast<int>(a + (b - a) * rest + 0.5);
  };
  const Colour& a = kRamp.at(low);
  const Colour& b = kRamp.at(low + 1);
  return fmt::format("#{:02x}{:02x}{:02x}", mix(a.red, b.red), mix(a.green, b.green),
                     mix(a.blue, b.blue));
}

class Drawing {
 public:
  explicit Drawing(const HeatMap& map) : map_(map), n_(map.labels.size()) {
    check(map.values.size() == n_ * n_, "a heat map has a value a cell");
    for (const double value : map.values) {
      if (std::isfinite(value)) {
        any_ = true;
        low_ = std::min(low_, value);
        high_ = std::max(high_, value);
      }
    }
    cell_ = std::clamp(kMapSize / static_cast<double>(std::max<std::size_t>(n_, 1)), kSmallestCell,
                       kLargestCell);
  }

  std::string svg() {
    const double side = std::max(cell_ * static_cast<double>(n_), 160.0);
    const double title_width = kTitleCharacter * static_cast<double>(map_.title.size());
    const double width = std::max(kLeft + side + kScaleWidth + kMargin, title_width + 2 * kMargin);
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width, kTop + side + kMargin);
    text(kMargin, 24, "start", map_.title, "font-size=\"15\"");
    for (std::size_t row = 0; row < n_; ++row) {
      names(row);
      for (std::size_t column = 0; column < n_; ++column) {
        draw_cell(row, column);
      }
    }
    scale(kLeft + side + kMargin, side);
    return out_ + "</svg>\n";
  }

 private:
  double part(double value) const { return high_ > low_ ? (value - low_) / (high_ - low_) : 1; }

  void text(double x, double y, const char* anchor, const std::string& words,
            const char* more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                        anchor, more, xml_text(words));
  }

  void names(std::size_t i) {
    if (cell_ < kLabelCell) {
      return;
    }
    const double middle = (static_cast<double>(i) + 0.5) * cell_;
    const std::string label = map_.labels[i].substr(0, kLongestLabel);
    text(kLeft - 6, kTop + middle + 4, "end", label);
    text(kLeft + middle, kTop - 6, "middle", label.substr(0, label.find(' ')));
  }

  void draw_cell(std::size_t row, std::size_t column) {
    const double value = map_.values[row * n_ + column];
    const double x = kLeft + static_cast<double>(column) * cell_;
    const double y = kTop + static_cast<double>(row) * cell_;
    const bool known = std::isfinite(value);
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
        "<title>{} to {}: {}</title></rect>\n",
        x, y, cell_, cell_, known ? colour_at(part(value)) : "#dddddd", xml_text(map_.labels[row]),
        xml_text(map_.labels[column]),
        known ? fmt::format("{:.4g} {}", value, xml_text(map_.value_label)) : "-");
    if (known && cell_ >= kTextCell) {
      text(x + cell_ / 2, y + cell_ / 2 + 4, "middle", fmt::format("{:.3g}", value),
           part(value) > 0.55 ? "fill=\"white\"" : "fill=\"black\"");
    }
  }

  void scale(double x, double height) {
    if (!any_) {
      return;
    }
    for (int step = 0; step < kScaleSteps; ++step) {
      const double from = static_cast<double>(step) / kScaleSteps;
      out_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x,
          kTop + (1 - from) * height - height / kScaleSteps, kScaleBar, height / kScaleSteps + 0.5,
          colour_at(from));
    }
    text(x + kScaleBar + 6, kTop + 9, "start", fmt::format("{:.3g} {}", high_, map_.value_label));
    text(x + kScaleBar + 6, kTop + height, "start",
         fmt::format("{:.3g} {}", low_, map_.value_label));
  }

  const HeatMap& map_;
  std::size_t n_;
  double cell_ = kLargestCell;
  // The scale begins at 0, so that differences in colour are proportional to differences in value.
  double low_ = 0;
  double high_ = 0;
  bool any_ = false;
  std::string out_;
};

}  // namespace

std::string to_svg(const HeatMap& map) { return Drawing(map).svg(); }

}  // namespace trireme
