// Svg builds a figure as self-contained SVG text, from boxes, lines and text. Coordinates and sizes
// are in pixels from the upper left corner. `attributes` are further attributes of an element, such
// as `fill="none"`; texts may hold any bytes.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

class Svg {
 public:
  // Begins a figure with a white background. css: rules for its elements; the background is of the
  // class "page".
  Svg(double width, double height, std::string_view attributes, std::string_view css = "");

  void text(double x, double y, std::string_view anchor, std::string_view words,
            std::string_view attributes = "");
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  // tooltip: what a reader sees with the pointer over the box; "" for none.
  void box(double x, double y, double width, double height, std::string_view attributes,
           std::string_view tooltip = "");
  // points: as in the attribute d, "M1 2 L3 4".
  void path(std::string_view points, std::string_view attributes);
  // Elements between the two calls are in one group.
  void begin_group(std::string_view attributes);
  void end_group();

  // Returns the whole figure.
  std::string str() const { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

// SvgColour is a colour by its parts, from 0 to 255.
struct SvgColour {
  double red, green, blue;
};
// Returns the colour that is `part` of the way from one to the other, as "#rrggbb".
std::string mixed_colour(const SvgColour& from, const SvgColour& to, double part);

// Returns any bytes as text for an XML element or attribute, escaped and without what XML can't
// represent.
std::string xml_text(std::string_view text);

}  // namespace trireme
