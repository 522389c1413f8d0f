#include "src/parallel/pipeline/schedule_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "src/figures/line_plot.h"
#include "src/figures/xml_text.h"

namespace trireme {
namespace {

// Sizes in pixels.
constexpr double kLeft = 76;
constexpr double kTop = 74;
constexpr double kRow = 30;
constexpr double kBox = 24;
constexpr double kNotes = 150;  // space to the right of the rows
constexpr double kFoot = 64;
constexpr double kStep = 24;  // width of the shortest step that is not a tie, if there is room
constexpr double kLeastWidth = 420;
constexpr double kMostWidth = 3000;
constexpr double kDigit = 6.5;
constexpr double kLegendEntry = 132;

struct Colour {
  double red, green, blue;
};
// Colours by kind of step. Dark text is readable on all of them, and they differ in lightness, too.
constexpr std::array<Colour, 5> kColours = {
    {{116, 178, 236}, {122, 205, 160}, {122, 205, 160}, {247, 190, 96}, {222, 150, 196}}};

// Returns the fill colour of a step; later chunks are lighter.
std::string colour_of(PipelineStep::Kind kind, int chunk, int chunks) {
  const double white = 0.65 * chunk / chunks;
  const auto mix = [white](double part) { return std::lround(part + (255 - part) * white); };
  const Colour& colour = kColours.at(static_cast<std::size_t>(kind));
  return fmt::format("#{:02x}{:02x}{:02x}", mix(colour.red), mix(colour.green), mix(colour.blue));
}

constexpr const char* kStyle =
    "<style>.page{fill:#fff}.idle{fill:#ececec}text{fill:#222}.axis{stroke:#888}"
    ".box{stroke:#fff;stroke-width:1}.number{fill:#111}"
    "@media(prefers-color-scheme:dark){.page{fill:#12161c}.idle{fill:#2b313a}text{fill:#ddd}"
    ".box{stroke:#12161c}.number{fill:#111}}</style>\n";

class Drawing {
 public:
  Drawing(const PipelineSimulation& simulation, const PipelineShape& shape)
      : simulation_(simulation), shape_(shape) {
    double shortest = std::numeric_limits<double>::infinity();
    for (const auto& timeline : simulation.stages) {
      for (const TimedStep& timed : timeline) {
        const double seconds = timed.end - timed.start;
        if (seconds > 0 && timed.step.kind != PipelineStep::Kind::tie) {
          shortest = std::min(shortest, seconds);
        }
        seen_.at(static_cast<std::size_t>(timed.step.kind)) = true;
      }
    }
    const double wanted = std::isfinite(shortest) ? simulation.seconds / shortest * kStep : 0;
    width_ = std::clamp(wanted, kLeastWidth, kMostWidth);
    bottom_ = kTop + kRow * static_cast<double>(simulation.stages.size());
  }

  std::string svg(const std::string& title) {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n{2}"
        "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        kLeft + width_ + kNotes, bottom_ + kFoot, kStyle);
    text(kLeft, 24, "start", title, "font-size=\"15\"");
    draw_legend();
    for (std::size_t stage = 0; stage < simulation_.stages.size(); ++stage) {
      draw_row(stage);
    }
    draw_axis();
    text(kLeft, bottom_ + 52, "start", caption());
    return out_ + "</svg>\n";
  }

 private:
  double across(double seconds) const {
    return kLeft + (simulation_.seconds > 0 ? seconds / simulation_.seconds * width_ : 0);
  }

  void text(double x, double y, const char* anchor, const std::string& words,
            const char* more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                        anchor, more, xml_text(words));
  }

  void draw_legend() {
    double x = kLeft;
    for (std::size_t kind = 0; kind < seen_.size(); ++kind) {
      if (!seen_.at(kind)) {
        continue;
      }
      const auto name = static_cast<PipelineStep::Kind>(kind);
      out_ += fmt::format("<rect x=\"{:.1f}\" y=\"42\" width=\"14\" height=\"14\" fill=\"{}\"/>\n",
                          x, colour_of(name, 0, 1));
      text(x + 20, 53, "start", std::string(name_of(name)));
      x += kLegendEntry;
    }
    if (shape_.chunks > 1) {
      text(x, 53, "start", "lighter: later chunks");
    }
  }

  void draw_row(std::size_t stage) {
    const double y = kTop + kRow * static_cast<double>(stage);
    text(kLeft - 8, y + 16, "end", fmt::format("stage {}", stage));
    out_ += fmt::format(
        "<rect class=\"idle\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\"/>\n",
        kLeft, y, width_, kBox);
    for (const TimedStep& timed : simulation_.stages[stage]) {
      draw_box(timed, y);
    }
    const double idle = simulation_.bubble(static_cast<int>(stage)) / simulation_.seconds;
    text(kLeft + width_ + 10, y + 16, "start",
         fmt::format("{:.1f} % idle, {} live", 100 * idle, simulation_.peak_live[stage]));
  }

  void draw_box(const TimedStep& timed, double y) {
    const double x = across(timed.start);
    const double width = across(timed.end) - x;
    out_ += fmt::format(
        "<rect class=\"box\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
        "fill=\"{}\"><title>{}: {:.4g} to {:.4g}</title></rect>\n",
        x, y, width, kBox, colour_of(timed.step.kind, timed.step.chunk, shape_.chunks),
        xml_text(describe(timed.step)), timed.start, timed.end);
    const std::string number = std::to_string(timed.step.micro_batch);
    if (width >= kDigit * static_cast<double>(number.size()) + 2) {
      text(x + width / 2, y + 16, "middle", number, "class=\"number\"");
    }
  }

  void draw_axis() {
    out_ += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
        kLeft, kLeft + width_, bottom_);
    for (const double tick : axis_ticks(0, simulation_.seconds, 10)) {
      out_ += fmt::format(
          "<line class=\"axis\" x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\"/>\n",
          across(tick), bottom_, bottom_ + 5);
      text(across(tick), bottom_ + 19, "middle", fmt::format("{:.4g}", tick));
    }
    text(kLeft + width_ + 10, bottom_ + 19, "start", "time");
  }

  std::string caption() const {
    const auto peak = std::max_element(simulation_.peak_live.begin(), simulation_.peak_live.end());
    return fmt::format("bubble: {:.1f} % of the time, {:.1f} % of the work; live at most: {}",
                       100 * simulation_.bubble_fraction(), 100 * simulation_.bubble_of_ideal(),
                       peak == simulation_.peak_live.end() ? 0 : *peak);
  }

  const PipelineSimulation& simulation_;
  const PipelineShape& shape_;
  std::array<bool, 5> seen_{};  // by kind: whether it occurs
  double width_ = kLeastWidth;  // width of the rows
  double bottom_ = kTop;
  std::string out_;
};

}  // namespace

std::string to_svg(const PipelineSimulation& simulation, const PipelineShape& shape,
                   const std::string& title) {
  return Drawing(simulation, shape).svg(title);
}

}  // namespace trireme
