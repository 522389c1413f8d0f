#include "src/app/model/whole_characters.h"

#include <utility>

#include "io/tokens/unicode.h"

namespace trireme {
namespace {

// Returns how many bytes at the end of the text may be the beginning of a character.
std::size_t unfinished(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) != 0x80) {
      const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1;
      return byte < 0xF5 && back < length ? back : 0;
    }
  }
  return 0;
}

}  // namespace

std::string WholeCharacters::add(std::string_view piece) {
  held_ += piece;
  const std::size_t whole = held_.size() - unfinished(held_);
  std::string text = with_replacements(std::string_view(held_).substr(0, whole));
  held_.erase(0, whole);
  return text;
}

std::string WholeCharacters::rest() { return with_replacements(std::exchange(held_, {})); }

}  // namespace trireme
