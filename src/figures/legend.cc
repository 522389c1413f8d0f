#include "src/figures/legend.h"

#include <algorithm>

namespace trireme {
namespace {

// Generous mean width of a sans-serif character of 12 pixels.
constexpr double kCharacter = 7;
constexpr double kGap = 20;  // between two entries of a row
constexpr std::size_t kLongestName = 60;

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

std::size_t characters_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

// Cuts a long UTF-8 text between two characters.
std::string shortened_to(const std::string& text, std::size_t most) {
  if (characters_of(text) <= most) {
    return text;
  }
  std::size_t seen = 0;
  std::size_t end = 0;
  while (end < text.size()) {
    seen += begins_character(text[end]) ? 1 : 0;
    if (seen == most) {
      break;  // the last character is the ellipsis
    }
    ++end;
  }
  return text.substr(0, end) + "…";
}

}  // namespace

std::vector<LegendEntry> legend_rows(const std::vector<std::string>& names, double left,
                                     double right, double top) {
  const double before_name = LegendEntry{}.text_left();
  const auto fitting =
      static_cast<std::size_t>(std::max((right - left - before_name) / kCharacter, 1.0));
  std::vector<LegendEntry> entries;
  double x = left;
  double y = top;
  for (const std::string& name : names) {
    LegendEntry entry;
    entry.text = shortened_to(name, std::min(kLongestName, fitting));
    entry.width = before_name + kCharacter * static_cast<double>(characters_of(entry.text));
    if (x > left && x + entry.width > right) {
      x = left;
      y += kLegendRowHeight;
    }
    entry.x = x;
    entry.y = y;
    x += entry.width + kGap;
    entries.push_back(std::move(entry));
  }
  return entries;
}

double legend_bottom(const std::vector<LegendEntry>& entries, double top) {
  return entries.empty() ? top : entries.back().y + kLegendRowHeight;
}

}  // namespace trireme
