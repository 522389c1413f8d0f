// LinePlot is a figure of lines over one pair of axes, as self-contained SVG text. A pure function
// of its data.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct PlotSeries {
  std::string name;  // shown in the legend
  std::vector<double> x;
  std::vector<double> y;  // same size as x; NaN and infinity leave a gap
};

// A PlotMark is a vertical line at an event ("killed"), or a horizontal line at a level ("unigram
// entropy").
struct PlotMark {
  double at = 0;
  std::string label;
};

struct LinePlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<PlotSeries> series;
  std::vector<PlotMark> events = {};
  std::vector<PlotMark> levels = {};
};

std::string to_svg(const LinePlot& plot);

// Returns about `count` round numbers (1, 2 or 5 times a power of ten) in [low, high].
std::vector<double> axis_ticks(double low, double high, int count);

}  // namespace trireme
