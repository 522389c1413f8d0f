// Makes a figure of stacked bars for a Document. A pure function.
#pragma once

#include <string>
#include <vector>

#include "src/report/document.h"

namespace trireme {

struct StackedBars {
  std::string heading;
  std::string unit;
  std::string rows_are;                     // what a row is, such as "rank"
  std::vector<std::string> labels;          // of the rows
  std::vector<std::string> parts;           // at most eleven; "other" is grey
  std::vector<std::vector<double>> values;  // [row][part]; those that are not above 0 are left out
};

// The picture shows at most 128 rows, the table all.
DocFigure stacked_figure(const StackedBars& bars);

}  // namespace trireme
