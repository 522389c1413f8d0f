#include "src/figures/texture.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace trireme {
namespace {

// A bar is drawn in dots of half a pixel. One bar is longer than the other by all shifts that are
// tried.
constexpr int kDotsPerPixel = 2;
constexpr int kRows = 16 * kDotsPerPixel;
constexpr int kWidth = 360;
constexpr int kShifts = 120;
using Row = std::bitset<kWidth + kShifts>;
using Bar = std::array<Row, kRows>;

// Returns whether a dashed line has ink at this distance from its start (SVG 1.1, 11.4).
bool has_ink(std::string_view dash, double at) {
  std::vector<double> lengths;
  const std::string text(dash);
  for (const char* from = text.c_str(); *from != '\0';) {
    char* end = nullptr;
    lengths.push_back(std::strtod(from, &end));
    from = end;
  }
  double period = 0;
  for (const double length : lengths) {
    period += length;
  }
  at = period > 0 ? std::fmod(at, period) : 0;
  bool ink = true;
  for (const double length : lengths) {
    if (at < length) {
      break;
    }
    at -= length;
    ink = !ink;
  }
  return ink;
}

Bar drawn(std::size_t category) {
  Bar bar;
  for (const TextureStroke& stroke : texture(category)) {
    for (int y = 0; y < kRows; ++y) {
      const double row = (y + 0.5) / kDotsPerPixel;
      for (int x = 0; x < kWidth + kShifts; ++x) {
        if (std::abs(row - stroke.middle) < stroke.width / 2 &&
            has_ink(stroke.dash, (x + 0.5) / kDotsPerPixel)) {
          bar.at(static_cast<std::size_t>(y)).set(static_cast<std::size_t>(x));
        }
      }
    }
  }
  return bar;
}

// Returns the part of the dots in which two bars differ, if one of them is moved so that they look
// as alike as possible.
double difference(const Bar& a, const Bar& b) {
  const Row seen = ~Row() >> kShifts;
  std::size_t least = static_cast<std::size_t>(kRows) * kWidth;
  for (std::size_t shift = 0; shift < kShifts; ++shift) {
    std::size_t differing = 0;
    for (std::size_t y = 0; y < kRows; ++y) {
      differing += ((a[y] ^ (b[y] >> shift)) & seen).count();
    }
    least = std::min(least, differing);
  }
  return static_cast<double>(least) / (kRows * kWidth);
}

TEST(Texture, EveryTwoLookDifferentWithoutColours) {
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < kTextures; ++i) {
    bars.push_back(drawn(i));
    for (std::size_t k = 0; k < i; ++k) {
      EXPECT_GE(difference(bars[i], bars[k]), 0.12) << k << " and " << i;
    }
  }
  EXPECT_EQ(difference(bars[4], bars[4]), 0) << "the measure itself";
  EXPECT_TRUE(texture(0).empty());
  EXPECT_EQ(&texture(kTextures), &texture(0));
}

TEST(Texture, StaysOnItsBar) {
  for (std::size_t i = 0; i < kTextures; ++i) {
    for (const TextureStroke& stroke : texture(i)) {
      EXPECT_GE(stroke.middle - stroke.width / 2, 0) << i;
      EXPECT_LE(stroke.middle + stroke.width / 2, kTexturedHeight) << i;
    }
  }
}

}  // namespace
}  // namespace trireme
