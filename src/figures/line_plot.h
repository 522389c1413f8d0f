// LinePlot is a figure of lines over one pair of axes, as self-contained SVG text. A pure function
// of its data. Elements have classes, by which the style sheet of a page can give them other
// colours: page, grid, axis, mark, event, legend, series and s0 to s7. The attributes data-frame
// (left, right, top, bottom in pixels), data-x and data-y (ranges of the axes) of the figure tell a
// script how to draw another part of the data (src/report/assets/report.js).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct PlotSeries {
  std::string name;  // shown in the legend
  std::vector<double> x;
  std::vector<double> y;  // same size as x; NaN and infinity leave a gap
  // Bounds of an interval around each y, drawn as bars; empty if there are none.
  std::vector<double> low = {};
  std::vector<double> high = {};
  bool is_ideal = false;  // drawn dashed
};

// A PlotMark is a vertical line at an event ("killed"), or a horizontal line at a level ("unigram
// entropy").
struct PlotMark {
  double at = 0;
  std::string label;
};

struct LinePlot {
  std::string title;  // may be empty
  std::string x_label;
  std::string y_label;
  std::vector<PlotSeries> series;
  std::vector<PlotMark> events = {};
  std::vector<PlotMark> levels = {};
  bool log_x = false;  // x must then be above 0
  bool log_y = false;
};

std::string to_svg(const LinePlot& plot);

// Returns about `count` round numbers (1, 2 or 5 times a power of ten) in [low, high].
std::vector<double> axis_ticks(double low, double high, int count);
// Formats 10000 as "10k", with few digits, so that labels stay narrow.
std::string tick_text(double value);
// The number of colours, and of patterns of dashes, before they repeat.
inline constexpr std::size_t kSeriesStyles = 8;
// Returns a colour; the first are those for colour-blind readers (Okabe and Ito, 2008), darkened
// for contrast with white.
std::string_view series_colour(std::size_t index);
// Returns the dashes of a line as in stroke-dasharray; "" for a solid one. Up to 64 lines have
// different pairs of colour and dashes.
std::string_view series_dash(std::size_t index);

}  // namespace trireme
