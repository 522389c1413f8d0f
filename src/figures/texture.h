// Marks that are drawn on bars, so that readers who see no colours, and prints, can tell the
// categories of bars apart. A texture is a set of horizontal strokes across a bar, some of them
// dashed; SVG draws it by a few lines, without a pattern, whose name would have to be unique on a
// page. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace trireme {

inline constexpr double kTexturedHeight = 16;  // of a bar, in pixels
inline constexpr std::size_t kTextures = 12;

struct TextureStroke {
  double middle = 0;  // pixels below the upper edge of the bar
  double width = 0;
  std::string_view dash = {};  // as stroke-dasharray; "": a whole line
};

// Returns the strokes of a category of bars. The first one has none.
const std::vector<TextureStroke>& texture(std::size_t category);

}  // namespace trireme
