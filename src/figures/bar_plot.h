// BarPlot is a figure of horizontal bars over one axis, as self-contained SVG text: stacked bars,
// or a timeline with one row per activity. Categories differ in colour and in the marks on their
// bars (texture.h). A pure function of its data. The classes of its elements are those of LinePlot;
// pieces have c0 to c11, and marks t0 to t11.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace trireme {

struct BarPiece {
  double from = 0;
  double to = 0;
  std::size_t category = 0;
  std::string tooltip = {};
};

struct BarRow {
  std::string label;
  std::vector<BarPiece> pieces;
};

struct BarPlot {
  std::string x_label;
  std::vector<std::string> categories;  // shown in the legend if any piece has them; at most 12
  std::vector<BarRow> rows;
};

std::string to_svg(const BarPlot& plot);

}  // namespace trireme
