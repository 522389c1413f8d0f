#include "io/quality/scripts.h"

#include <algorithm>

namespace trireme {
namespace {

struct ScriptBlock {
  char32_t first;
  char32_t last;
  std::string_view script;
};

// Sorted; from Blocks.txt of Unicode 16.0, neighbours of one script joined.
constexpr std::array kBlocks = {
    ScriptBlock{0x0041, 0x024F, "latin"},      ScriptBlock{0x0250, 0x02AF, "latin"},
    ScriptBlock{0x0370, 0x03FF, "greek"},      ScriptBlock{0x0400, 0x052F, "cyrillic"},
    ScriptBlock{0x0530, 0x058F, "armenian"},   ScriptBlock{0x0590, 0x05FF, "hebrew"},
    ScriptBlock{0x0600, 0x06FF, "arabic"},     ScriptBlock{0x0750, 0x077F, "arabic"},
    ScriptBlock{0x0870, 0x08FF, "arabic"},     ScriptBlock{0x0900, 0x097F, "devanagari"},
    ScriptBlock{0x0980, 0x09FF, "bengali"},    ScriptBlock{0x0A00, 0x0A7F, "gurmukhi"},
    ScriptBlock{0x0A80, 0x0AFF, "gujarati"},   ScriptBlock{0x0B80, 0x0BFF, "tamil"},
    ScriptBlock{0x0C00, 0x0C7F, "telugu"},     ScriptBlock{0x0C80, 0x0CFF, "kannada"},
    ScriptBlock{0x0D00, 0x0D7F, "malayalam"},  ScriptBlock{0x0D80, 0x0DFF, "sinhala"},
    ScriptBlock{0x0E00, 0x0E7F, "thai"},       ScriptBlock{0x0E80, 0x0EFF, "lao"},
    ScriptBlock{0x1000, 0x109F, "myanmar"},    ScriptBlock{0x10A0, 0x10FF, "georgian"},
    ScriptBlock{0x1100, 0x11FF, "hangul"},     ScriptBlock{0x1200, 0x139F, "ethiopic"},
    ScriptBlock{0x1780, 0x17FF, "khmer"},      ScriptBlock{0x1C80, 0x1C8F, "cyrillic"},
    ScriptBlock{0x1C90, 0x1CBF, "georgian"},   ScriptBlock{0x1E00, 0x1EFF, "latin"},
    ScriptBlock{0x1F00, 0x1FFF, "greek"},      ScriptBlock{0x2C60, 0x2C7F, "latin"},
    ScriptBlock{0x2D00, 0x2D2F, "georgian"},   ScriptBlock{0x2D80, 0x2DDF, "ethiopic"},
    ScriptBlock{0x2DE0, 0x2DFF, "cyrillic"},   ScriptBlock{0x2E80, 0x2FDF, "han"},
    ScriptBlock{0x3005, 0x3007, "han"},        ScriptBlock{0x3040, 0x30FF, "kana"},
    ScriptBlock{0x3130, 0x318F, "hangul"},     ScriptBlock{0x31F0, 0x31FF, "kana"},
    ScriptBlock{0x3400, 0x4DBF, "han"},        ScriptBlock{0x4E00, 0x9FFF, "han"},
    ScriptBlock{0xA640, 0xA69F, "cyrillic"},   ScriptBlock{0xA720, 0xA7FF, "latin"},
    ScriptBlock{0xA8E0, 0xA8FF, "devanagari"}, ScriptBlock{0xA960, 0xA97F, "hangul"},
    ScriptBlock{0xA9E0, 0xA9FF, "myanmar"},    ScriptBlock{0xAA60, 0xAA7F, "myanmar"},
    ScriptBlock{0xAB00, 0xAB2F, "ethiopic"},   ScriptBlock{0xAB30, 0xAB6F, "latin"},
    ScriptBlock{0xAC00, 0xD7FF, "hangul"},     ScriptBlock{0xF900, 0xFAFF, "han"},
    ScriptBlock{0xFB00, 0xFB06, "latin"},      ScriptBlock{0xFB13, 0xFB17, "armenian"},
    ScriptBlock{0xFB1D, 0xFB4F, "hebrew"},     ScriptBlock{0xFB50, 0xFDFF, "arabic"},
    ScriptBlock{0xFE70, 0xFEFF, "arabic"},     ScriptBlock{0xFF21, 0xFF5A, "latin"},
    ScriptBlock{0xFF66, 0xFF9F, "kana"},       ScriptBlock{0xFFA0, 0xFFDC, "hangul"},
    ScriptBlock{0x1AFF0, 0x1B16F, "kana"},     ScriptBlock{0x20000, 0x3FFFF, "han"}};

constexpr std::size_t number_of(std::string_view name) {
  std::size_t number = 0;
  while (kScriptNames.at(number) != name) {
    ++number;
  }
  return number;
}

constexpr auto kNumbers = [] {
  std::array<std::size_t, kBlocks.size()> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers.at(i) = number_of(kBlocks.at(i).script);
  }
  return numbers;
}();

}  // namespace

std::size_t script_number(char32_t letter) {
  const auto* const after =
      std::upper_bound(kBlocks.begin(), kBlocks.end(), letter,
                       [](char32_t code, const ScriptBlock& block) { return code < block.first; });
  if (after == kBlocks.begin() || letter > (after - 1)->last) {
    return 0;
  }
  return kNumbers.at(static_cast<std::size_t>(after - 1 - kBlocks.begin()));
}

}  // namespace trireme
