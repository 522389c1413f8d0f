#include "src/figures/texture.h"

#include <array>

namespace trireme {

const std::vector<TextureStroke>& texture(std::size_t category) {
  constexpr double kMiddle = kTexturedHeight / 2;
  constexpr double kWhole = kTexturedHeight;
  // Dashes begin with a gap, so that a narrow piece of a bar shows its colour first.
  static const std::array<std::vector<TextureStroke>, kTextures> kAll = {{
      {},
      {{kMiddle, kWhole, "0 3 2 3"}},                                    // stripes
      {{kMiddle, 3, ""}},                                                // a line in the middle
      {{4, 4, "0 3 4 3"}, {12, 4, "0 3 4 3"}},                           // two rows of squares
      {{kMiddle, kWhole, "0 3 6 3"}},                                    // broad stripes
      {{4, 2, ""}, {12, 2, ""}},                                         // two lines
      {{kMiddle, kWhole, "0 4 2 2 2 4"}},                                // pairs of stripes
      {{kMiddle, 6, "0 3 7 2"}},                                         // a row of blocks
      {{kMiddle, kWhole, "0 5 2 5"}, {kMiddle, 2, ""}},                  // stripes and a line
      {{12, 8, "0 2 2 1"}},                                              // a comb
      {{4, 8, "6 6"}, {12, 8, "0 6 6 0"}},                               // a chessboard
      {{3, 2, "0 2 2 2"}, {kMiddle, 2, "0 2 2 2"}, {13, 2, "0 2 2 2"}},  // dots
  }};
  return kAll.at(category % kTextures);
}

}  // namespace trireme
