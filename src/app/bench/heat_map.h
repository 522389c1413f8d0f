// HeatMap: a square table of numbers as coloured cells, as SVG text that needs nothing else. Dark
// is much, on a scale from 0 to the largest value; cells without a number are grey; every cell
// tells its value when pointed at. A pure function of its data.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct HeatMap {
  std::string title;
  std::string value_label;          // "GB/s"
  std::vector<std::string> labels;  // of rows and columns
  std::vector<double> values;       // [labels, labels], row by row; NaN: no number
};

std::string to_svg(const HeatMap& map);

}  // namespace trireme
