#include "src/report/stacked_figure.h"

#include <cmath>

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/figures/bar_plot.h"
#include "src/report/line_figure.h"

namespace trireme {

DocFigure stacked_figure(const StackedBars& bars) {
  constexpr std::size_t kMostBars = 128;
  constexpr std::size_t kGrey = 11;
  BarPlot plot{bars.unit, bars.parts, {}};
  plot.categories.resize(kGrey + 1);
  plot.categories.back() = "other";
  DocFigure figure;
  figure.heading = bars.heading;
  figure.table = {bars.heading + ", in " + bars.unit, {bars.rows_are}, {}};
  figure.table.head.insert(figure.table.head.end(), bars.parts.begin(), bars.parts.end());
  for (std::size_t row = 0; row < bars.values.size(); ++row) {
    BarRow bar{bars.labels[row], {}};
    std::vector<std::string> cells = {bars.labels[row]};
    double at = 0;
    for (std::size_t part = 0; part < bars.parts.size(); ++part) {
      const double value = bars.values[row][part];
      cells.push_back(number_text(value));
      if (std::isfinite(value) && value > 0) {
        bar.pieces.push_back({at, at + value, bars.parts[part] == "other" ? kGrey : part,
                              fmt::format("{}, {}: {} {}", bars.labels[row], bars.parts[part],
                                          number_text(value), bars.unit)});
        at += value;
      }
    }
    figure.table.rows.push_back(std::move(cells));
    if (plot.rows.size() < kMostBars) {
      plot.rows.push_back(std::move(bar));
    }
  }
  figure.summary = fmt::format("{}, in {}: one stacked bar for each of {}.{}", bars.heading,
                               bars.unit, counted(std::ssize(bars.values), bars.rows_are),
                               bars.values.size() > kMostBars
                                   ? fmt::format(" The picture shows the first {}.", kMostBars)
                                   : "");
  figure.svg = to_svg(plot);
  return figure;
}

}  // namespace trireme
