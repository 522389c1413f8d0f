// HeatMap draws a square table of numbers as coloured cells, as self-contained SVG. Larger values
// are darker, on a scale from 0 to the largest value; cells without a number are grey, and a
// tooltip shows the value of each cell. A pure function of its data.
#pragma once

#include <string>
#include <vector>

namespace trireme {

struct HeatMap {
  std::string title;
  std::string value_label;          // such as "GB/s"
  std::vector<std::string> labels;  // for rows and columns
  std::vector<double> values;       // [labels, labels], row by row; NaN if there is no number
};

std::string to_svg(const HeatMap& map);

}  // namespace trireme
