#include "src/figures/bar_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "src/figures/legend.h"
#include "src/figures/line_plot.h"
#include "src/figures/svg.h"
#include "src/figures/texture.h"

namespace trireme {
namespace {

constexpr double kBarsWidth = 800;
constexpr double kBarsLeft = 132;
constexpr double kBarsRight = kBarsWidth - 24;
constexpr double kRowHeight = 22;
constexpr double kLegendTop = 4;
constexpr double kAxisHeight = 44;
constexpr std::size_t kLongestRowLabel = 18;
// The first eight are those of lines.
constexpr std::array<std::string_view, kTextures> kBarColours = {
    "#0072b2", "#c24b00", "#00805c", "#a8487f", "#946200", "#3a3a3a",
    "#6a51c9", "#b0122f", "#7fb8e6", "#e7a977", "#7cc7a5", "#7f7f7f"};
// The colours of the marks on light and on dark bars.
constexpr std::string_view kDarkInk = "#1c2128";
constexpr std::string_view kLightInk = "#ffffff";
constexpr std::size_t kFirstLight = 8;
constexpr std::size_t kLastLight = 10;

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
    std::vector<std::string> names;
    for (const std::size_t category : used_) {
      names.push_back(category < plot.categories.size() ? plot.categories[category] : "");
    }
    legend_ = legend_rows(names, kBarsLeft, kBarsRight, kLegendTop);
    top_ = legend_bottom(legend_, kLegendTop) + kLegendTop;
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
    draw_textures();
    svg_->line(kBarsLeft, bottom_, kBarsRight, bottom_, "class=\"axis\" stroke=\"#888\"");
    svg_->text((kBarsLeft + kBarsRight) / 2, bottom_ + 36, "middle", plot_.x_label);
    return svg_->str();
  }

 private:
  double across(double x) const {
    return kBarsLeft + (x - low_) / (high_ - low_) * (kBarsRight - kBarsLeft);
  }
  static std::string look(std::size_t category) {
    const std::size_t i = category % kTextures;
    return fmt::format("class=\"c{}\" fill=\"{}\"", i, kBarColours[i]);
  }

  void draw_legend() {
    svg_->begin_group("class=\"legend\"");
    auto entry = legend_.begin();
    for (const std::size_t category : used_) {
      svg_->box(entry->x, entry->y + 1, kLegendSample, kTexturedHeight, look(category));
      textured_.push_back({entry->x, entry->y + 1, kLegendSample, category});
      svg_->text(entry->text_left(), entry->baseline(), "start", entry->text);
      ++entry;
    }
    svg_->end_group();
  }

  void draw_row(const BarRow& row, double y) {
    svg_->text(kBarsLeft - 8, y + kTexturedHeight - 2, "end", shortened(row.label));
    for (const BarPiece& piece : row.pieces) {
      if (std::isfinite(piece.from) && std::isfinite(piece.to) && piece.to > piece.from) {
        const double width = std::max(across(piece.to) - across(piece.from), 0.5);
        svg_->box(across(piece.from), y + 2, width, kTexturedHeight, look(piece.category),
                  piece.tooltip);
        textured_.push_back({across(piece.from), y + 2, width, piece.category});
      }
    }
  }

  // Draws the marks of each category on all of its boxes, above them.
  void draw_textures() {
    svg_->begin_group("class=\"textures\" fill=\"none\" pointer-events=\"none\"");
    for (const std::size_t category : used_) {
      const std::size_t i = category % kTextures;
      for (const TextureStroke& stroke : texture(category)) {
        std::string path;
        for (const Textured& box : textured_) {
          if (box.category == category) {
            path += fmt::format("M{:.1f} {:.1f}h{:.1f}", box.x, box.y + stroke.middle, box.width);
          }
        }
        svg_->path(
            path,
            fmt::format(
                "class=\"t{}\" stroke=\"{}\" stroke-width=\"{}\"{}", i,
                i >= kFirstLight && i <= kLastLight ? kDarkInk : kLightInk, stroke.width,
                stroke.dash.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", stroke.dash)));
      }
    }
    svg_->end_group();
  }

  // Textured is a box that gets the marks of its category.
  struct Textured {
    double x, y, width;
    std::size_t category;
  };

  const BarPlot& plot_;
  std::set<std::size_t> used_;
  std::vector<Textured> textured_;
  std::vector<LegendEntry> legend_;  // of the used categories, in their order
  double low_ = 0;
  double high_ = 0;
  double top_ = 0;
  double bottom_ = 0;
  std::optional<Svg> svg_;
};

}  // namespace

std::string to_svg(const BarPlot& plot) { return BarFigure(plot).draw(); }

}  // namespace trireme
