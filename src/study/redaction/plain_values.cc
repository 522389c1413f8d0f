#include "src/study/redaction/plain_values.h"

#include <algorithm>
#include <cctype>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestEntry = 1024;  // bytes in which the other quote is looked for

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
  const bool ends = next == text.size() || is_among_signs(" \t\r\n\"'`\\", text[next]) ||
                    begins_entry(text, next, with_blanks);
  return ends ? at : next;
}

bool is_quote_in_word(std::string_view text, std::size_t at) {
  return at > 0 && at + 1 < text.size() && is_alphanumeric(text[at - 1]) &&
         is_alphanumeric(text[at + 1]);
}

// Returns whether the backslash at `at` belongs to a shell's word, rather than to a text in quotes
// whose line ends are written as \\n.
bool escapes_sign(std::string_view text, std::size_t at) {
  return at + 1 < text.size() && !is_alphanumeric(text[at + 1]) &&
         !is_among_signs("\"'\\\r\n", text[at + 1]);
}

}  // namespace

std::size_t end_of_plain_value(std::string_view text, std::size_t begin, bool with_blanks,
                               bool parameter) {
  const std::string_view ends = with_blanks ? "\t\n,;}]\"'\\&" : " \t\n,;}]\"'\\&";
  const auto next_end = [&](std::size_t at) {
    return parameter ? first_of(text, ends, at)
                     : first_of_plain(text, ends.substr(0, ends.size() - 1), at);
  };
  std::size_t at = next_end(begin);
  while (at < text.size()) {
    const char c = text[at];
    const bool escape = c == '\\' && escapes_sign(text, at);
    const bool whole = escape && !(parameter && text[at + 1] == '&');
    const bool quote = is_among_signs("\"'", c) && with_blanks && is_quote_in_word(text, at);
    const std::size_t next = is_among_signs(",;]}", c) ? skip_signs(text, at, with_blanks)
                             : whole                   ? at + 2
                             : escape || quote         ? at + 1
                                                       : at;
    if (next == at) {
      break;
    }
    at = next_end(next);
  }
  return std::min(at, text.size());
}

std::optional<std::size_t> end_of_quoted_entry(std::string_view text, std::size_t name,
                                               std::size_t begin) {
  if (name == 0 || !is_among_signs("\"'", text[name - 1])) {
    return std::nullopt;
  }
  const std::string_view line = text.substr(0, end_of_line(text, begin));
  const std::string_view near =
      line.substr(0, begin + std::min(kLongestEntry, line.size() - begin));
  const std::size_t close = near.find(text[name - 1], begin);
  if (close == std::string_view::npos) {
    return std::nullopt;
  }
  std::size_t end = near.find(',', begin);
  while (end < close && !begins_entry(text, end + 1, false)) {
    end = near.find(',', end + 1);
  }
  return std::min(end, close);
}

}  // namespace trireme
