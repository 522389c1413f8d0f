#include "src/study/redaction/anchor_redaction.h"

#include <algorithm>
#include <set>
#include <utility>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/bracket_pairs.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kNearKey = 1024;    // bytes before an alias in which its key is looked for
constexpr std::size_t kMostBefore = 512;  // bytes of a line before an anchor

// Returns the end of the name of an anchor or an alias behind its sign at `sign`, or `sign` if that
// is none.
std::size_t end_of_anchor(std::string_view text, std::size_t sign) {
  const std::string_view before = " \t\n[{,";
  const bool apart = sign == 0 || before.find(text[sign - 1]) != std::string_view::npos;
  const std::size_t end = end_of_word(text, sign + 1);
  return apart && end > sign + 1 ? end : sign;
}

// Returns whether the sign of an anchor is within quotes, as in JSON, or too far behind the start
// of its line to tell.
bool is_within_quotes(std::string_view text, std::size_t sign) {
  const std::size_t least = sign > kMostBefore ? sign - kMostBefore : 0;
  std::string_view before = text.substr(least, sign - least);
  const std::size_t line = before.rfind('\n');
  before.remove_prefix(line == std::string_view::npos ? 0 : line + 1);
  return (line == std::string_view::npos && least > 0) ||
         before.find("\\\"") != std::string_view::npos ||
         std::count(before.begin(), before.end(), '"') % 2 == 1;
}

// Returns the begin of the line of `at`, at least `least`.
std::size_t begin_of_key_line(std::string_view text, std::size_t least, std::size_t at) {
  return least + text.substr(least, at - least).rfind('\n') + 1;  // npos + 1 is 0
}

// Returns the begin of the name that ends at `end`, without the quotes around it.
std::size_t begin_of_key(std::string_view text, std::size_t least, std::size_t end) {
  std::size_t begin = end;
  while (begin > least && std::string_view("\n{[,\"':").find(text[begin - 1]) == text.npos) {
    --begin;
  }
  return begin;
}

// Returns whether the colon at `colon` stands behind a secret's name, or behind the word "value"
// that belongs to one.
bool is_behind_secret_name(std::string_view text, std::size_t least, std::size_t colon) {
  std::size_t end = colon;
  while (end > least && (text[end - 1] == '"' || text[end - 1] == '\'' || text[end - 1] == ' ')) {
    --end;
  }
  std::size_t begin = begin_of_key(text, least, end);
  begin = std::min(text.find_first_not_of(" \t-?", begin), end);
  std::string name(text.substr(begin, end - begin));
  std::replace(name.begin(), name.end(), ' ', '_');
  return is_secret_name(name) || is_value_of_secret(text, begin, end);
}

std::size_t skip_blanks_back(std::string_view text, std::size_t least, std::size_t at) {
  while (at > least && is_blank(text[at - 1])) {
    --at;
  }
  return at;
}

// Returns whether the item before the one at `at` in a list is an option such as --password.
bool is_behind_option(std::string_view text, std::size_t least, std::size_t at) {
  if (at == least || (text[at - 1] != ',' && text[at - 1] != '-')) {
    return false;
  }
  const std::string_view before = text.substr(least, at - 1 - least);
  const std::size_t end = before.find_last_not_of(" \t\r\n\"'") + 1;  // npos + 1 is 0
  const std::size_t begin = before.substr(0, end).find_last_of(" \t\n\"'[,") + 1;
  return is_secret_option(before.substr(begin, end - begin));
}

// Returns whether brackets around the place `at` are the value of a secret's name.
bool is_in_secret_brackets(std::string_view text, std::size_t least, std::size_t at) {
  int depth = 0;
  for (; at > least; --at) {
    const char c = text[at - 1];
    depth += c == ']' || c == '}' ? 1 : 0;
    if ((c == '[' || c == '{') && depth-- == 0) {
      depth = 0;
      const std::size_t colon = skip_blanks_back(text, least, at - 1);
      if (colon > least && text[colon - 1] == ':' &&
          is_behind_secret_name(text, least, colon - 1)) {
        return true;
      }
    }
  }
  return false;
}

// Returns whether a key of YAML above the line of `at`, which is indented deeper, is a secret's.
bool is_below_secret_key(std::string_view text, std::size_t least, std::size_t at) {
  std::size_t line = begin_of_key_line(text, least, at);
  std::size_t indent = text.find_first_not_of(' ', line) - line;
  while (line > least && indent > 0) {
    const std::size_t end = line - 1;
    line = begin_of_key_line(text, least, end);
    const std::size_t first = std::min(text.find_first_not_of(' ', line), end);
    const std::size_t last = text.substr(line, end - line).find_last_not_of(" \t\r") + line;
    if (first < end && first - line < indent) {
      indent = first - line;
      if (last < end && text[last] == ':' && is_behind_secret_name(text, line, last)) {
        return true;
      }
    }
  }
  return false;
}

// Returns whether the alias at `sign` is a value of a secret's name, in a list or mapping below or
// behind one, or behind an option in a list.
bool is_secret_alias(std::string_view text, std::size_t sign) {
  const std::size_t least = sign > kNearKey ? sign - kNearKey : 0;
  const std::size_t at = skip_blanks_back(text, least, sign);
  const bool in_list = at > least && std::string_view("-[,").find(text[at - 1]) != text.npos;
  const std::size_t colon = text.substr(least, at - least).rfind(':');
  return (colon != text.npos && (in_list || least + colon + 1 == at) &&
          is_behind_secret_name(text, least, least + colon)) ||
         is_behind_option(text, least, at) || is_in_secret_brackets(text, least, at) ||
         is_below_secret_key(text, least, at);
}

using Names = std::set<std::string, std::less<>>;

// Returns the anchors that an alias or the anchor itself gives a secret's name.
Names secret_anchors(std::string_view text) {
  Names aliases;
  Names secret;
  for (const char sign : {'*', '&'}) {
    for (std::size_t at = text.find(sign); at != text.npos; at = text.find(sign, at + 1)) {
      const std::size_t end = end_of_anchor(text, at);
      const std::string_view name = text.substr(at + 1, end > at ? end - at - 1 : 0);
      if (sign == '*' && !name.empty()) {
        aliases.emplace(name);
      }
      if (aliases.contains(name) && is_secret_alias(text, at)) {
        secret.emplace(name);
      }
    }
  }
  return secret;
}

// Returns the end of the value at `value` of the anchor at `sign`. brackets: those of the text.
std::size_t end_of_anchored(std::string_view text, const BracketPairs& brackets, std::size_t sign,
                            std::size_t value) {
  const std::size_t least = sign > kNearKey ? sign - kNearKey : 0;
  const std::size_t line = begin_of_key_line(text, least, sign);
  const std::size_t key = std::min(text.find_first_not_of(" \t", line), sign);
  const std::string_view quote = quote_at(text, value);
  if (!quote.empty()) {
    const std::size_t end = end_of_quote(text, value + quote.size(), quote);
    return std::min(end + quote.size(), text.size());
  }
  if (value < text.size() && (text[value] == '[' || text[value] == '{')) {
    return brackets.end(value);
  }
  const std::string_view before = text.substr(line, sign - line);
  const bool block = introduces_block(text, value);
  if (!block && before.find_first_of("[{") != std::string_view::npos) {
    return first_of(text, ",]}\n", value);
  }
  const auto in_flow = brackets.end_of_flow_value(sign, value);
  return in_flow ? *in_flow : end_of_block(text, value, key, block);
}

}  // namespace

Redacted redact_anchors(std::string text) {
  const Names names = secret_anchors(text);
  const BracketPairs brackets(names.empty() ? std::string_view() : text);
  Redacted result;
  std::size_t at = 0;
  for (std::size_t sign = names.empty() ? text.npos : text.find('&'); sign != text.npos;
       sign = text.find('&', sign + 1)) {
    const std::size_t end = end_of_anchor(text, sign);
    if (end == sign || sign < at || is_within_quotes(text, sign) ||
        !names.contains(std::string_view(text).substr(sign + 1, end - sign - 1))) {
      continue;
    }
    const std::size_t value = end_of_tags(text, skip_blanks(text, end));
    std::size_t last = end_of_anchored(text, brackets, sign, value);
    last -= last > value && text[last - 1] == '\r' ? 1 : 0;
    if (last > value && std::string_view(text).substr(value, last - value) != kRedacted) {
      result.text += text.substr(at, end - at);
      result.text += ' ';
      result.text += kRedacted;
      ++result.secrets;
      at = last;
    }
  }
  result.text += at == 0 ? std::move(text) : text.substr(at);
  return result;
}

}  // namespace trireme
