#include "src/study/redaction/colour_codes.h"

#include <algorithm>
#include <array>

namespace trireme {
namespace {

// Returns the end of a colour code that begins with the escape character, or with backslashes and
// the name of that character, at `at`; or `at` if there is none.
std::size_t end_of_colour(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 6> kEscapes = {"u001b", "u001B", "x1b", "x1B", "033", "e"};
  std::size_t end = at + 1;
  if (text[at] == '\\') {
    end = std::min(text.find_first_not_of('\\', at), text.size());
    const std::string_view rest = text.substr(end);
    const auto escape = std::find_if(kEscapes.begin(), kEscapes.end(),
                                     [&](std::string_view one) { return rest.starts_with(one); });
    if (escape == kEscapes.end()) {
      return at;
    }
    end += escape->size();
  }
  if (end >= text.size() || text[end] != '[') {
    return at;
  }
  end = text.find_first_not_of("0123456789;:", end + 1);
  const bool whole = end != std::string_view::npos && (text[end] == 'm' || text[end] == 'K');
  return whole ? end + 1 : at;
}

}  // namespace

std::string without_colours(std::string_view text) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t next = text.find_first_of("\033\\"); next != std::string_view::npos;
       next = text.find_first_of("\033\\", next)) {
    const std::size_t end = end_of_colour(text, next);
    if (end > next) {
      result += text.substr(at, next - at);
      at = next = end;
    } else {
      // The backslashes of another escape belong together.
      next = text[next] == '\\' ? text.find_first_not_of('\\', next) : next + 1;
    }
  }
  result += text.substr(at);
  return result;
}

}  // namespace trireme
