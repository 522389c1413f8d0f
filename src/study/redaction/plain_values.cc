#include "src/study/redaction/plain_values.h"

#include <algorithm>
#include <cctype>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestEntry = 1024;     // bytes in which the other quote is looked for
constexpr std::size_t kMostSlashesBefore = 16;  // before a quote
constexpr std::size_t kBytesBeforeSlash = 512;  // in which the first quote is looked for

bool is_alphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_among_signs(std::string_view signs, char c) {
  return signs.find(c) != std::string_view::npos;
}

// Returns whether an entry such as NAME=VALUE or NAME: VALUE begins at `at`.
bool begins_entry(std::string_view text, std::size_t at, bool with_blanks) {
  const std::size_t begin = at + quote_at(text, at).size();
  const std::size_t end = end_of_word(text, begin);
  const std::size_t sign = end + quote_at(text, end).size();
  if (end == begin || sign + 1 >= text.size()) {
    return false;
  }
  const char next = text[sign + 1];
  return text[sign] == ':' ? with_blanks || is_blank(next)
                           : text[sign] == '=' && !is_among_signs(" =\t\r\n,;", next);
}

// Returns the place behind the commas, semicolons and brackets at `at`, or `at` if they end a
// value.
std::size_t skip_signs(std::string_view text, std::size_t at, bool with_blanks) {
  constexpr std::string_view kSigns = ",;]})";
  std::size_t next = at;
  while (next < text.size() && is_among_signs(kSigns, text[next])) {
    ++next;
  }
  const bool ends = next == text.size() || is_among_signs(" \t\r\n\"'`", text[next]) ||
                    (text[next] == '\\' && behind_escape(text, next) == next) ||
                    begins_entry(text, next, with_blanks);
  return ends ? at : next;
}

bool is_quote_in_word(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() && is_alphanumeric(text[at - 1]) &&
         is_alphanumeric(text[at + 1]);
}

// Returns the end of a call with a text in quotes that begins at `begin`, such as Some("x"), or
// `begin`. The call may be cut off with its line.
std::size_t end_of_call(std::string_view text, std::size_t begin) {
  const std::string_view near =
      text.substr(0, end_of_line(text.substr(0, begin + kLongestEntry), begin));
  std::size_t at = begin;
  while (at < near.size() && (is_alphanumeric(near[at]) || is_among_signs("_.:!", near[at]))) {
    ++at;
  }
  if (at == begin || at == near.size() || near[at] != '(') {
    return begin;
  }
  int depth = 0;
  bool quoted = false;
  while (at < near.size()) {
    const std::string_view quote = quote_at(near, at);
    if (!quote.empty()) {
      const std::size_t close = end_of_quote(near, at + quote.size(), quote);
      if (close >= near.size() && quote.back() == '\'') {
        return begin;
      }
      at = std::min(close + quote.size(), near.size());
      quoted = true;
      continue;
    }
    depth += near[at] == '(' ? 1 : near[at] == ')' ? -1 : 0;
    at = near[at] == '\\' ? std::min(near.find_first_not_of('\\', at), near.size()) : at + 1;
    if (depth == 0) {
      break;
    }
  }
  return quoted ? at : begin;
}

}  // namespace

std::size_t behind_escape(std::string_view text, std::size_t at) {
  const std::size_t last = text.find_first_not_of('\\', at);
  if (last == std::string_view::npos || is_among_signs("\r\n", text[last])) {
    return at;
  }
  if (is_among_signs("\"'nrt", text[last]) && may_be_in_string(text, at)) {
    return at;
  }
  return last + (last - at) % 2;
}

bool may_be_in_string(std::string_view text, std::size_t at) {
  const std::size_t least = at > kBytesBeforeSlash ? at - kBytesBeforeSlash : 0;
  int double_quotes = 0;
  int single_quotes = 0;
  while (at > least && text[at - 1] != '\n') {
    --at;
    double_quotes += text[at] == '"' ? 1 : 0;
    single_quotes += text[at] == '\'' && !is_quote_in_word(text, at) ? 1 : 0;
  }
  const bool whole = at == 0 || text[at - 1] == '\n';
  return !whole || double_quotes % 2 == 1 || single_quotes % 2 == 1;
}

std::size_t end_of_plain_value(std::string_view text, std::size_t begin, bool with_blanks,
                               bool parameter) {
  const std::string_view ends = with_blanks ? "\t\n,;}]\"'\\&" : " \t\n,;}]\"'\\&";
  const auto next_end = [&](std::size_t at) {
    return parameter ? first_of(text, ends, at)
                     : first_of_plain(text, ends.substr(0, ends.size() - 1), at);
  };
  std::size_t at = next_end(end_of_call(text, begin));
  while (at < text.size()) {
    const char c = text[at];
    const bool quote = is_among_signs("\"'", c) && with_blanks && is_quote_in_word(text, at);
    const bool escaped_end = c == '\\' && parameter && text.substr(at + 1).starts_with('&');
    const std::size_t next = is_among_signs(",;]}", c) ? skip_signs(text, at, with_blanks)
                             : quote || escaped_end    ? at + 1
                             : c == '\\'               ? behind_escape(text, at)
                                                       : at;
    if (next == at) {
      break;
    }
    at = next_end(next);
  }
  return std::min(at, text.size());
}

std::size_t end_of_texts(std::string_view text, std::size_t at) {
  while (true) {
    const std::size_t next = skip_blanks(text, at);
    const std::string_view quote = quote_at(text, next);
    if (next == at || quote.size() != 1 || is_quoted_key(text, next)) {
      return at;
    }
    const std::size_t close = end_of_quote(text, next + 1, quote);
    if (close >= text.size() || text[close] != quote[0]) {
      return at;
    }
    at = close + 1;
  }
}

std::optional<std::size_t> end_of_quoted_entry(std::string_view text, std::size_t name,
                                               std::size_t begin) {
  if (name == 0 || !is_among_signs("\"'", text[name - 1])) {
    return std::nullopt;
  }
  const std::string_view line = text.substr(0, end_of_line(text, begin));
  const std::string_view near =
      line.substr(0, begin + std::min(kLongestEntry, line.size() - begin));
  std::size_t open = name - 1;
  while (open > 0 && name - open < kMostSlashesBefore && text[open - 1] == '\\') {
    --open;
  }
  const std::size_t close = end_of_quote(near, begin, text.substr(open, name - open));
  if (close >= near.size() || near[close] == '\n') {
    return std::nullopt;
  }
  std::size_t end = near.find(',', begin);
  while (end < close && !begins_entry(text, end + 1, false)) {
    end = near.find(',', end + 1);
  }
  return std::min(end, close);
}

}  // namespace trireme
