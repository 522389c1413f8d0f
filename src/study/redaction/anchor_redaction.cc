#include "src/study/redaction/anchor_redaction.h"

#include <algorithm>
#include <set>
#include <utility>

#include "src/study/redaction/assigned_text.h"
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

// Returns whether the alias at `sign` is a value of a secret's name, or in a list below or behind
// one.
bool has_secret_key(std::string_view text, std::size_t sign) {
  const std::size_t least = sign > kNearKey ? sign - kNearKey : 0;
  std::size_t at = sign;
  while (at > least && (text[at - 1] == ' ' || text[at - 1] == '\t')) {
    --at;
  }
  const bool in_list = at > least && std::string_view("-[,").find(text[at - 1]) != text.npos;
  const std::size_t found = text.substr(least, at - least).rfind(':');
  const std::size_t colon = least + found;
  if (found == std::string_view::npos || (!in_list && colon + 1 != at)) {
    return false;
  }
  std::size_t end = colon;
  while (end > least && (text[end - 1] == '"' || text[end - 1] == '\'' || text[end - 1] == ' ')) {
    --end;
  }
  std::size_t begin = end;
  while (begin > least && std::string_view("\n{[,\"':").find(text[begin - 1]) == text.npos) {
    --begin;
  }
  std::string name(text.substr(begin, end - begin));
  name.erase(0, std::min(name.find_first_not_of(" \t-?"), name.size()));
  std::replace(name.begin(), name.end(), ' ', '_');
  return is_secret_name(name);
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
      if (aliases.contains(name) && has_secret_key(text, at)) {
        secret.emplace(name);
      }
    }
  }
  return secret;
}

// Returns the end of the value at `value` of the anchor at `sign`.
std::size_t end_of_anchored(std::string_view text, std::size_t sign, std::size_t value) {
  const std::size_t least = sign > kNearKey ? sign - kNearKey : 0;
  const std::size_t line = least + text.substr(least, sign - least).rfind('\n') + 1;
  const std::size_t key = std::min(text.find_first_not_of(" \t", line), sign);
  if (introduces_block(text, value)) {
    return end_of_block(text, value, key, true);
  }
  const std::string_view quote = quote_at(text, value);
  if (!quote.empty()) {
    const std::size_t end = end_of_quote(text, value + quote.size(), quote);
    return std::min(end + quote.size(), text.size());
  }
  if (text[value] == '[' || text[value] == '{') {
    return end_of_brackets(text, value);
  }
  const std::string_view before = text.substr(line, sign - line);
  const bool in_flow = before.find_first_of("[{") != std::string_view::npos;
  return in_flow ? first_of(text, ",]}\n", value) : end_of_block(text, value, key, false);
}

}  // namespace

Redacted redact_anchors(std::string text) {
  const Names names = secret_anchors(text);
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
    std::size_t last = end_of_anchored(text, sign, value);
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
