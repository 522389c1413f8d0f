#include "src/study/redaction/assigned_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kNeighbourhood = 512;  // bytes in which a key's neighbours are looked for
constexpr std::size_t kMostSlashes = 8;      // before the letter of an escape, in nested JSON
constexpr std::array<std::string_view, 4> kValueKeys = {"value", "val", "default", "content"};
constexpr std::array<std::string_view, 8> kNameKeys = {"name",  "key",    "variable",  "var",
                                                       "field", "option", "parameter", "id"};

// Returns the bytes of a blank at this place, or 0.
std::size_t blank_bytes(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 4> kUnicode = {"\u00a0", "\u202f", "\u3000", "\ufeff"};
  const std::string_view rest = text.substr(std::min(at, text.size()));
  if (rest.empty() || rest[0] == ' ' || rest[0] == '\t') {
    return rest.empty() ? 0 : 1;
  }
  for (const std::string_view blank : kUnicode) {
    if (rest.starts_with(blank)) {
      return blank.size();
    }
  }
  // U+2000 to U+200F are spaces of different widths, and marks without any.
  const bool space =
      rest.starts_with("\xE2\x80") && rest.size() > 2 && static_cast<unsigned char>(rest[2]) < 0x90;
  return space ? 3 : 0;
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

struct WordEscape {
  char character = 0;
  std::size_t bytes = 0;
};

// Returns the character of a word that an escape such as \u0077 or \x77 stands for.
std::optional<WordEscape> word_escape_at(std::string_view text, std::size_t at) {
  std::size_t digits = at;
  while (digits < text.size() && digits < at + kMostSlashes && text[digits] == '\\') {
    ++digits;
  }
  if (digits == at || digits >= text.size() || (text[digits] != 'u' && text[digits] != 'x')) {
    return std::nullopt;
  }
  const std::size_t count = text[digits] == 'u' ? 4 : 2;
  const std::string hex(text.substr(digits + 1, count));
  if (hex.size() < count || !std::all_of(hex.begin(), hex.end(), [](char c) {
        return std::isxdigit(static_cast<unsigned char>(c)) != 0;
      })) {
    return std::nullopt;
  }
  const int code = std::stoi(hex, nullptr, 16);
  return code < 0x80 && is_word_character(static_cast<char>(code))
             ? std::optional(WordEscape{static_cast<char>(code), digits + 1 + count - at})
             : std::nullopt;
}

std::string lower_case(std::string_view word) {
  std::string out(word);
  for (char& c : out) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Returns whether a list item of YAML begins at this place, which is the start of a line.
bool is_item(std::string_view text, std::size_t at) {
  const std::size_t dash = skip_blanks(text, at);
  return dash < text.size() && text[dash] == '-' && skip_blanks(text, dash + 1) > dash + 1;
}

// Returns where the object or item begins that holds the key at this place.
std::size_t begin_of_object(std::string_view text, std::size_t begin) {
  const std::size_t least = begin > kNeighbourhood ? begin - kNeighbourhood : 0;
  int depth = 0;
  for (std::size_t at = begin; at > least; --at) {
    const std::string_view rest = text.substr(at - 1);
    depth += rest[0] == '}' ? 1 : 0;
    if ((rest[0] == '{' && depth-- == 0) || (rest[0] == '\n' && is_item(text, at))) {
      return at;
    }
  }
  return least;
}

std::size_t end_of_object(std::string_view text, std::size_t begin) {
  const std::size_t most = std::min(text.size(), begin + kNeighbourhood);
  int depth = 0;
  for (std::size_t at = begin; at < most; ++at) {
    depth += text[at] == '{' ? 1 : 0;
    if ((text[at] == '}' && depth-- == 0) || (text[at] == '\n' && is_item(text, at + 1))) {
      return at;
    }
  }
  return most;
}

// Returns the value of a key such as "name" that begins at this place, if there is one.
std::optional<std::string> name_value(std::string_view text, std::size_t at, std::size_t end) {
  constexpr std::size_t kLongest = 9 * 8;  // "parameter" in escapes
  const std::string_view names = "nkvfopiNKVFOPI\\";
  if (end - at > kLongest || names.find(text[at]) == std::string_view::npos ||
      !is_name_key(plain_word(text.substr(at, end - at)))) {
    return std::nullopt;
  }
  std::size_t next = skip_white(text, end + quote_at(text, end).size());
  if (next >= text.size() || (text[next] != ':' && text[next] != '=')) {
    return std::nullopt;
  }
  next = skip_white(text, next + 1);
  next += quote_at(text, next).size();
  const std::size_t last = end_of_word(text, next);
  return last > next ? std::optional(plain_word(text.substr(next, last - next))) : std::nullopt;
}

// Returns whether the last word of a name is one such as "2" or "old" and `count` words before it
// are those of a secret, as in "API key 2". A number behind "pass" and "token" rather counts.
bool is_named_variant(std::string_view text, const std::vector<std::size_t>& begins,
                      std::size_t count, std::size_t end) {
  const std::string_view variant = text.substr(begins[0], end - begins[0]);
  std::string name(text.substr(begins[count], begins[0] - 1 - begins[count]));
  const std::string_view last = text.substr(begins[1], begins[0] - 1 - begins[1]);
  if (!is_variant(variant) || name.starts_with('-') ||
      (counts_something(last) && std::isdigit(static_cast<unsigned char>(variant[0])) != 0)) {
    return false;
  }
  const bool harmless =
      count + 1 < begins.size() &&
      is_made_harmless(text.substr(begins[count + 1], begins[count] - 1 - begins[count + 1]), name);
  std::replace(name.begin(), name.end(), ' ', '_');
  return !harmless && is_secret_name(name);
}

// Returns how many words before the last one of a name are those of a secret that it tells from
// others, as in "API key 2", or 0.
std::size_t words_before_variant(std::string_view text, const std::vector<std::size_t>& begins,
                                 std::size_t end) {
  constexpr std::size_t kMost = 2;
  for (std::size_t count = 1; count <= kMost && count < begins.size(); ++count) {
    if (is_named_variant(text, begins, count, end)) {
      return count;
    }
  }
  return 0;
}

}  // namespace

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const std::size_t bytes = rest.starts_with("\\\n")     ? 2
                              : rest.starts_with("\\\r\n") ? 3
                                                           : blank_bytes(text, at);
    if (bytes == 0) {
      break;
    }
    at += bytes;
  }
  return std::min(at, text.size());
}

std::size_t skip_white(std::string_view text, std::size_t at) {
  at = skip_blanks(text, at);
  while (at < text.size() && (text[at] == '\n' || text[at] == '\r')) {
    at = skip_blanks(text, at + 1);
  }
  return at;
}

std::string_view quote_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && text[end] == '\\') {
    ++end;
  }
  const bool quote = end < text.size() && (text[end] == '"' || text[end] == '\'');
  return quote ? text.substr(at, end + 1 - at) : std::string_view();
}

std::size_t end_of_word(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const auto escape = text[at] == '\\' ? word_escape_at(text, at) : std::nullopt;
    if (!escape && !is_word_character(text[at])) {
      break;
    }
    at += escape ? escape->bytes : 1;
  }
  return at;
}

std::string plain_word(std::string_view word) {
  std::string plain;
  for (std::size_t at = 0; at < word.size();) {
    const auto escape = word[at] == '\\' ? word_escape_at(word, at) : std::nullopt;
    plain += escape ? escape->character : word[at];
    at += escape ? escape->bytes : 1;
  }
  return plain;
}

std::optional<NamePhrase> secret_phrase(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr std::size_t kLongestPhrase = 64;
  constexpr std::size_t kMostWords = 5;
  constexpr std::size_t kMostInEntry = 3;
  const bool bold = text.substr(end).starts_with("**");  // of Markdown
  const std::size_t behind = skip_blanks(text, end + (bold ? 2 : quote_at(text, end).size()));
  if (begin < 2 || text[begin - 1] != ' ' || assignment_at(text, behind) == 0) {
    return std::nullopt;
  }
  const std::size_t least = begin > kLongestPhrase ? begin - kLongestPhrase : 0;
  std::vector<std::size_t> begins = {begin};
  for (std::size_t at = begin; at > least + 1 && text[at - 1] == ' ' &&
                               is_word_character(text[at - 2]) && begins.size() < kMostWords;) {
    --at;
    while (at > least && is_word_character(text[at - 1])) {
      --at;
    }
    begins.push_back(at);
  }
  const std::size_t first = begins.back();
  const bool quoted = first > 0 && (text[first - 1] == '"' || text[first - 1] == '\'') &&
                      !quote_at(text, end).empty();
  const auto words_from = [&](std::size_t from) {
    std::string name(text.substr(from, end - from));
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
  };
  if (begins.size() == 1) {
    return std::nullopt;
  }
  if (quoted) {
    std::string whole = words_from(first);
    return is_secret_name(whole) ? std::optional(NamePhrase{std::move(whole), first})
                                 : std::nullopt;
  }
  // "Cannot read the password file: " is none, but "with API key: " is one.
  const std::string last = words_from(begin);
  std::string two = words_from(begins[1]);
  const std::string_view before = text.substr(begins[1], begin - 1 - begins[1]);
  if (is_made_harmless(before, last)) {  // as in "forward pass" and "next token"
    return NamePhrase{std::move(two), begin};
  }
  // Neither "-x auth" nor "12 PASS" is a name of two words.
  const bool words = before[0] != '-' && before.find_first_not_of("0123456789.") != before.npos;
  const bool both = words && !is_secret_name(last) && !is_whole_name(last) && is_secret_name(two) &&
                    !is_secret_name(before);
  const bool compared = text.substr(behind).starts_with("==");
  // Behind options, as in "srun -x KEY=a b", the value ends as in other commands.
  const bool command = text.substr(first, begin - first).find(" -") != std::string_view::npos;
  const bool entry =
      begins.size() <= kMostInEntry && begins_line(text, first) && !command && !compared;
  if (const std::size_t words_before = words_before_variant(text, begins, end)) {
    const std::size_t own = begins[words_before];
    return NamePhrase{words_from(own), entry ? first : own};
  }
  return both || (entry && is_secret_name(last))
             ? std::optional(NamePhrase{both ? std::move(two) : last, entry ? first : begins[1]})
             : std::nullopt;
}

bool is_name_key(std::string_view key) { return is_one_of(kNameKeys, lower_case(key)); }
bool is_value_key(std::string_view key) { return is_one_of(kValueKeys, lower_case(key)); }

bool is_value_of_secret(std::string_view text, std::size_t begin, std::size_t end) {
  if (!is_value_key(text.substr(begin, end - begin))) {
    return false;
  }
  // The nearest name before the value decides, or else the first one behind it.
  std::optional<std::string> nearest;
  const std::size_t last = end_of_object(text, end);
  for (std::size_t at = begin_of_object(text, begin); at < last;) {
    const std::size_t next = end_of_word(text, at);
    if (at >= begin && nearest) {
      break;
    }
    if (auto name = next > at ? name_value(text, at, next) : std::nullopt) {
      nearest = std::move(name);
    }
    at = std::max(next, at + 1);
  }
  return nearest && is_secret_name(*nearest);
}

}  // namespace trireme
