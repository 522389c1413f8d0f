#include "src/parallel/pipeline/schedule_drawing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "src/figures/line_plot.h"
#include "src/figures/svg.h"

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

// Colours by kind of step. Dark text is readable on all of them, and they differ in lightness, too.
constexpr std::array<SvgColour, 5> kColours = {
    {{116, 178, 236}, {122, 205, 160}, {122, 205, 160}, {247, 190, 96}, {222, 150, 196}}};

// Returns the fill colour of a step; later chunks are lighter.
std::string colour_of(PipelineStep::Kind kind, int chunk, int chunks) {
  constexpr SvgColour kWhite{255, 255, 255};
  return mixed_colour(kColours.at(static_cast<std::size_t>(kind)), kWhite, 0.65 * chunk / chunks);
}

constexpr const char* kStyle =
    ".page{fill:#fff}.idle{fill:#ececec}text{fill:#222}.axis{stroke:#888}"
    ".box{stroke:#fff;stroke-width:1}.number{fill:#111}"
    "@media(prefers-color-scheme:dark){.page{fill:#12161c}.idle{fill:#2b313a}text{fill:#ddd}"
    ".box{stroke:#12161c}.number{fill:#111}}";

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
    svg_ = Svg(kLeft + width_ + kNotes, bottom_ + kFoot, "font-size=\"12\"", kStyle);
  }

  std::string draw(const std::string& title) {
    svg_.text(kLeft, 24, "start", title, "font-size=\"15\"");
    draw_legend();
    for (std::size_t stage = 0; stage < simulation_.stages.size(); ++stage) {
      draw_row(stage);
    }
    draw_axis();
    svg_.text(kLeft, bottom_ + 52, "start", caption());
    return svg_.str();
  }

 private:
  double across(double seconds) const {
    return kLeft + (simulation_.seconds > 0 ? seconds / simulation_.seconds * width_ : 0);
  }

  void draw_legend() {
    double x = kLeft;
    for (std::size_t kind = 0; kind < seen_.size(); ++kind) {
      if (!seen_.at(kind)) {
        continue;
      }
      const auto name = static_cast<PipelineStep::Kind>(kind);
      svg_.box(x, 42, 14, 14, fmt::format("fill=\"{}\"", colour_of(name, 0, 1)));
      svg_.text(x + 20, 53, "start", name_of(name));
      x += kLegendEntry;
    }
    if (shape_.chunks > 1) {
      svg_.text(x, 53, "start", "lighter: later chunks");
    }
  }

  void draw_row(std::size_t stage) {
    const double y = kTop + kRow * static_cast<double>(stage);
    svg_.text(kLeft - 8, y + 16, "end", fmt::format("stage {}", stage));
    svg_.box(kLeft, y, width_, kBox, "class=\"idle\"");
    for (const TimedStep& timed : simulation_.stages[stage]) {
      draw_box(timed, y);
    }
    const double idle = simulation_.bubble(static_cast<int>(stage)) / simulation_.seconds;
    svg_.text(kLeft + width_ + 10, y + 16, "start",
              fmt::format("{:.1f} % idle, {} live", 100 * idle, simulation_.peak_live[stage]));
  }

  void draw_box(const TimedStep& timed, double y) {
    const double x = across(timed.start);
    const double width = across(timed.end) - x;
    svg_.box(x, y, width, kBox,
             fmt::format("class=\"box\" fill=\"{}\"",
                         colour_of(timed.step.kind, timed.step.chunk, shape_.chunks)),
             fmt::format("{}: {:.4g} to {:.4g}", describe(timed.step), timed.start, timed.end));
    const std::string number = std::to_string(timed.step.micro_batch);
    if (width >= kDigit * static_cast<double>(number.size()) + 2) {
      svg_.text(x + width / 2, y + 16, "middle", number, "class=\"number\"");
    }
  }

  void draw_axis() {
    constexpr const char* kAxis = "class=\"axis\"";
    svg_.line(kLeft, bottom_, kLeft + width_, bottom_, kAxis);
    for (const double tick : axis_ticks(0, simulation_.seconds, 10)) {
      svg_.line(across(tick), bottom_, across(tick), bottom_ + 5, kAxis);
      svg_.text(across(tick), bottom_ + 19, "middle", fmt::format("{:.4g}", tick));
    }
    svg_.text(kLeft + width_ + 10, bottom_ + 19, "start", "time");
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
  Svg svg_{0, 0, ""};
};

}  // namespace

std::string to_svg(const PipelineSimulation& simulation, const PipelineShape& shape,
                   const std::string& title) {
  return Drawing(simulation, shape).draw(title);
}

}  // namespace trireme
