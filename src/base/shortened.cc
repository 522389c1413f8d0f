#include "src/base/shortened.h"

#include <algorithm>

#include <fmt/core.h>

namespace trireme {
namespace {

struct Limit {
  std::size_t most;  // texts of more bytes are cut
  std::size_t kept;  // bytes that stay on each side
};
constexpr Limit kWord{1000, 300};
constexpr Limit kText{16 << 10, 4 << 10};

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::string without_middle(std::string_view text, const Limit& limit) {
  if (text.size() <= limit.most) {
    return std::string(text);
  }
  std::size_t first = limit.kept;
  std::size_t last = text.size() - limit.kept;
  // A character has at most three such bytes; other text is not UTF-8 and is cut anywhere.
  for (int i = 0; i < 3 && continues_character(text[first]); ++i) {
    --first;
  }
  for (int i = 0; i < 3 && continues_character(text[last]); ++i) {
    ++last;
  }
  return fmt::format("{}...({} bytes)...{}", text.substr(0, first), last - first,
                     text.substr(last));
}

}  // namespace

std::string shortened(std::string_view text) {
  constexpr std::string_view kBetweenWords = " \n\t";
  std::string out;
  while (!text.empty()) {
    const std::size_t word = std::min(text.find_first_of(kBetweenWords), text.size());
    out += without_middle(text.substr(0, word), kWord);
    text.remove_prefix(word);
    const std::size_t blank = std::min(text.find_first_not_of(kBetweenWords), text.size());
    out += text.substr(0, blank);
    text.remove_prefix(blank);
  }
  return without_middle(out, kText);
}

}  // namespace trireme
