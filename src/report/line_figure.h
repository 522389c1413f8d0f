// Makes figures of a run's metrics over its steps, for a Document. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/figures/line_plot.h"
#include "src/report/document.h"

namespace trireme {

struct MetricLine {
  std::string name;
  const std::vector<double>& values;  // one per step; NaN where there is none
  double factor = 1;                  // by which values are multiplied
  bool is_sparse = false;             // whether steps without a value leave no gap
};

struct LineFigure {
  std::string heading;
  std::string y_label;
  std::vector<MetricLine> lines;
  std::vector<PlotMark> events = {};
};

// step: ascending. The figure has at most a few thousand points of each line, among them its lowest
// and highest; the table has some rows, and the least and the largest values. A line without
// numbers is left out.
DocFigure line_figure(const LineFigure& what, const std::vector<double>& step);

// Formats a number for a table, with five significant digits; "-" for NaN.
std::string number_text(double value);

}  // namespace trireme
