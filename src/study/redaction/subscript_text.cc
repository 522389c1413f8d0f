#include "src/study/redaction/subscript_text.h"

#include <algorithm>
#include <cctype>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestSubscript = 128;
constexpr std::size_t kLongestExpression = 256;
constexpr std::size_t kLongestSubscripts = 1024;  // bytes of all subscripts of an expression

bool is_any_of(std::string_view characters, char c) {
  return characters.find(c) != std::string_view::npos;
}

// Returns the bracket before the word at `begin`, or npos if other text is between them.
std::size_t open_bracket(std::string_view text, std::size_t begin) {
  const std::size_t least = begin > kLongestSubscript ? begin - kLongestSubscript : 0;
  while (begin > least && is_any_of(":\"'`\\ ", text[begin - 1])) {
    --begin;
  }
  return begin > 0 && is_any_of("[{", text[begin - 1]) ? begin - 1 : std::string_view::npos;
}

// Returns the place behind the subscripts that begin at `at`, without those that don't end nearby.
std::size_t skip_subscripts(std::string_view text, std::size_t at) {
  text = text.substr(0, at + kLongestSubscripts);
  while (at < text.size() && (text[at] == '[' || text[at] == '{')) {
    const std::string_view near = text.substr(at, kLongestSubscript);
    const std::size_t close = near.find_first_of("]}\n");
    if (close == std::string_view::npos || near[close] != (near[0] == '[' ? ']' : '}')) {
      break;
    }
    at += close + 1;
  }
  return at;
}

// Returns whether a bracket behind this character belongs to an expression.
bool ends_operand(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || is_any_of("_)]}>$?.\"'", c);
}

std::size_t begin_of_expression(std::string_view text, std::size_t at) {
  const std::size_t least = at > kLongestExpression ? at - kLongestExpression : 0;
  while (at > least && !is_any_of(" \t\r\n;,({", text[at - 1])) {
    --at;
  }
  return at;
}

}  // namespace

std::optional<Subscripted> subscripted_at(std::string_view text, std::size_t begin,
                                          std::size_t end) {
  const bool back_tick = end < text.size() && text[end] == '`';
  const std::size_t quote = back_tick ? 1 : quote_at(text, end).size();
  const std::size_t close = skip_blanks(text, end + quote);
  const std::size_t open = close < text.size() && is_any_of("]}", text[close])
                               ? open_bracket(text, begin)
                               : std::string_view::npos;
  const bool inside =
      open != std::string_view::npos && text[close] == (text[open] == '[' ? ']' : '}');
  if (!inside && quote > 0) {
    return std::nullopt;
  }
  const std::size_t last = skip_subscripts(text, inside ? close + 1 : end);
  const std::size_t operation = skip_blanks(text, last);
  const std::size_t bytes = assignment_at(text, operation);
  if (bytes == 0 || last == end) {
    return std::nullopt;
  }
  const std::string_view sign = text.substr(operation, bytes);
  const bool equals = sign.find('=') != std::string_view::npos;
  const bool operand = inside && open > 0 && ends_operand(text[open - 1]);
  const bool good = !inside     ? equals
                    : quote > 0 ? true
                                : operand || (text[open] == '[' && equals && operation == last);
  return good ? std::optional(
                    Subscripted{begin_of_expression(text, inside ? open : begin), operation})
              : std::nullopt;
}

bool is_subscript(std::string_view text, std::size_t begin, std::size_t end) {
  return text[begin] == '[' && end - begin <= kLongestSubscript &&
         text.substr(begin, end - begin).find(',') == std::string_view::npos &&
         ((end < text.size() && is_any_of("[{", text[end])) ||
          assignment_at(text, skip_blanks(text, end)) > 0);
}

}  // namespace trireme
