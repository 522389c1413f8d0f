// Places the entries of a legend in rows above a figure, so that they cover neither its data nor
// each other. Pure functions.
#pragma once

#include <string>
#include <vector>

namespace trireme {

inline constexpr double kLegendRowHeight = 18;
inline constexpr double kLegendSample = 24;  // width of the line or box before the name

// A legend entry is a box with a sample of the line or colour and a name. Sizes are in pixels.
struct LegendEntry {
  double x = 0;  // upper left corner
  double y = 0;
  double width = 0;  // of sample and name
  std::string text;  // the name, shortened if it is very long

  double sample_right() const { return x + kLegendSample; }
  double text_left() const { return x + kLegendSample + 8; }
  double baseline() const { return y + 13; }
};

// Returns an entry for each name, within left and right, in as many rows from `top` downwards as
// are needed. A name that would not fit into a row is shortened.
std::vector<LegendEntry> legend_rows(const std::vector<std::string>& names, double left,
                                     double right, double top);
// Returns the lower edge of the last row, or `top` without entries.
double legend_bottom(const std::vector<LegendEntry>& entries, double top);

}  // namespace trireme
