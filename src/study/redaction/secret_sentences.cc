#include "src/study/redaction/secret_sentences.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/plain_values.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestText = 512;  // bytes in quotes
constexpr std::size_t kLongestLink = 16;   // bytes of the words below
constexpr std::size_t kLongWord = 16;      // letters that are no ordinary word
constexpr std::size_t kLeastSecret = 3;    // characters in a sentence
constexpr int kMostLinks = 4;              // words between a name or its owner and its value
constexpr int kMostOfOwner = 5;            // words behind "of"
constexpr std::size_t kMostValues = 16;    // of one name
constexpr int kMostListed = 64;            // values and ordinary words in a list behind a name

// Behind these, the owner of a secret or its place is named.
constexpr std::array<std::string_view, 9> kOf = {"for", "of", "on", "at", "in",
                                                 "to",  "by", "as", "von"};
constexpr std::array<std::string_view, 9> kLinks = {"is",  "was",    "are",     "were", "to",
                                                    "ist", "lautet", "becomes", "from"};
// May stand before and behind the links.
constexpr std::array<std::string_view, 13> kMore = {
    "now",   "set",     "changed", "reset",    "been",    "has", "have",
    "still", "rotated", "updated", "replaced", "renewed", "with"};
// Between the values of a list or of a change.
constexpr std::array<std::string_view, 9> kBetween = {"and",  "or",   "to",  "then", "und",
                                                      "oder", "from", "now", "with"};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_capital(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }

std::string small_letters(std::string_view word) {
  std::string small(word);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

template <std::size_t N>
bool contains_word(const std::array<std::string_view, N>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), small_letters(one)) != all.end();
}

// Returns whether letters or digits follow the quote at `at`, as in hun"ter2.
bool is_quote_within_word(std::string_view text, std::size_t at) {
  return at + 1 < text.size() && (text[at] == '"' || text[at] == '\'') &&
         std::isalnum(static_cast<unsigned char>(text[at + 1])) != 0;
}

// Returns the place behind an arrow and the blanks before it, or `at` if there is none.
std::size_t skip_arrow(std::string_view text, std::size_t at) {
  const std::size_t sign = skip_blanks(text, at);
  for (const std::string_view arrow : {"->", "\u2192"}) {
    if (sign > at && text.substr(sign).starts_with(arrow)) {
      return sign + arrow.size();
    }
  }
  return at;
}

// Returns the place behind the words that connect a name or its owner at `at` with a value, as in
// "has been set to", or `at` if there are none.
std::size_t skip_links(std::string_view text, std::size_t at) {
  const std::size_t first = at;
  bool linked = false;
  bool changed = false;
  std::string_view last;
  for (int word = 0; word < kMostLinks; ++word) {
    const std::size_t begin = skip_blanks(text, at);
    const std::size_t end = end_of_word(text, begin);
    const std::string_view own = text.substr(begin, std::min(end - begin, kLongestLink));
    const bool link = contains_word(kLinks, own);
    const bool more =
        contains_word(kMore, own) || (own == "by" && small_letters(last) == "replaced");
    if (begin == at || (!link && !more)) {
      break;
    }
    linked = linked || link;
    changed = changed || more;
    last = own;
    at = end;
  }
  if (!linked) {
    const std::size_t arrow = skip_arrow(text, at);
    linked = arrow > at;
    at = arrow;
  }
  if ((linked || changed) && at < text.size() && text[at] == ':') {
    linked = true;
    ++at;
  }
  return linked ? at : first;
}

// Returns the place behind the links that follow "of" and the words of an owner, or `at`.
std::size_t skip_owner(std::string_view text, std::size_t at) {
  std::size_t place = at;
  for (int word = 0; word <= kMostOfOwner; ++word) {
    const std::size_t begin = skip_blanks(text, place);
    const std::size_t end = first_of(text, " \t\r\n,;:\"'`", begin);
    const bool first = word == 0;
    if (begin == place || end == begin ||
        (first && !contains_word(kOf, text.substr(begin, std::min(end - begin, kLongestLink))))) {
      return at;
    }
    place = end;
    if (const std::size_t linked = first ? place : skip_links(text, place); linked > place) {
      return linked;
    }
  }
  return at;
}

// Returns the end of the word of a sentence that begins at `begin`, without the signs that end a
// sentence or close a bracket.
std::size_t end_of_sentence_word(std::string_view text, std::size_t begin) {
  constexpr std::string_view kEnds = " \t\r\n\"'`\\";
  std::size_t end = first_of_plain(text, kEnds, begin);
  while (end < text.size()) {
    const std::size_t next = text[end] == '\\'                 ? behind_escape(text, end)
                             : is_quote_within_word(text, end) ? end + 1
                                                               : end;
    if (next == end) {
      break;
    }
    end = first_of_plain(text, kEnds, next);
  }
  while (end > begin && std::string_view(".,:;)]}").find(text[end - 1]) != std::string_view::npos) {
    --end;
  }
  return end;
}

struct SentenceValue {
  TextRange range;
  std::size_t end = 0;  // behind its closing quote
  bool secret = false;  // or an ordinary word
};

// Returns the text in quotes or the word at `at`.
std::optional<SentenceValue> value_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) {
    return std::nullopt;
  }
  const std::string_view quote = text[at] == '`' ? text.substr(at, 1) : quote_at(text, at);
  const std::size_t open = at + quote.size();
  if (quote.empty()) {
    const std::size_t end = end_of_sentence_word(text, open);
    if (end == open) {
      return std::nullopt;
    }
    // "The password is wrong!" names none.
    const std::string_view word = text.substr(open, end - open);
    const std::string_view core = word.substr(0, word.find_last_not_of("!?") + 1);
    const bool letters = std::all_of(core.begin(), core.end(), is_letter);
    return SentenceValue{{open, end}, end, looks_secret(letters ? core : word)};
  }
  const std::string_view near = text.substr(0, open + kLongestText);
  const std::size_t end = std::min(near.find(quote, open), end_of_line(near, open));
  const bool closed = near.substr(std::min(end, near.size())).starts_with(quote);
  return end > open
             ? std::optional(SentenceValue{{open, end}, closed ? end + quote.size() : end, true})
             : std::nullopt;
}

// Where the next value of a list or of a change begins.
struct NextValue {
  std::size_t begin = 0;
  bool changed = false;  // "to" or an arrow stands before it
};

// Returns the value behind commas and words such as "and" and "to" at `at`, if there is one.
std::optional<NextValue> next_value(std::string_view text, std::size_t at) {
  const bool comma = at < text.size() && (text[at] == ',' || text[at] == ';');
  std::size_t place = skip_arrow(text, at + (comma ? 1 : 0));
  bool changed = place > at + (comma ? 1 : 0);
  for (int word = 0; word < 2; ++word) {
    const std::size_t begin = skip_blanks(text, place);
    const std::size_t end = end_of_word(text, begin);
    const std::string_view own = text.substr(begin, std::min(end - begin, kLongestLink));
    if (begin > at && contains_word(kBetween, own)) {
      changed = changed || small_letters(own) == "to";
      place = end;
    }
  }
  const std::size_t begin = skip_blanks(text, place);
  const bool found = place > at && begin > place;
  return found ? std::optional(NextValue{begin, changed}) : std::nullopt;
}

bool is_number(std::string_view word) {
  return word.find_first_not_of("0123456789.,") == std::string_view::npos;
}

std::string_view text_of(std::string_view text, TextRange range) {
  return text.substr(range.begin, range.end - range.begin);
}

// Adds the values behind the words between `at`, where a name ends, and `linked`, as those behind
// "was set to".
void add_values(std::string_view text, std::size_t linked, std::size_t at,
                std::vector<TextRange>& values) {
  std::size_t place = skip_blanks(text, linked);
  if (linked == at || place == linked) {
    return;
  }
  // "read from a file" names no value, but "changed from X to Y" does.
  const bool from = text.substr(0, linked).ends_with("from");
  for (int listed = 0; listed < kMostListed && values.size() < kMostValues; ++listed) {
    const auto value = value_at(text, place);
    const auto next = value ? next_value(text, value->end) : std::nullopt;
    if (!value || (listed == 0 && from && !(next && next->changed))) {
      break;
    }
    const std::string_view own = text_of(text, value->range);
    // A number behind a secret is rather a part of the sentence.
    const bool counts = !values.empty() && is_number(own) && !is_number(text_of(text, values[0]));
    if (value->secret && !counts) {
      values.push_back(value->range);
    }
    if (!next || (values.empty() && !next->changed)) {
      break;
    }
    place = next->begin;
  }
}

}  // namespace

bool is_named_in_sentence(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string own(text.substr(begin, end - begin));
  const std::string lower = small_letters(own);
  if (lower == "pass" || lower.ends_with("pins")) {
    return false;
  }
  const std::string_view before = line_before(text, begin);
  if (before.size() > 1 && before.back() == ' ') {
    const std::string_view words = before.substr(0, before.size() - 1);
    const std::size_t blank = words.find_last_of(" \t\"'(,");
    const std::string_view word = words.substr(blank == std::string_view::npos ? 0 : blank + 1);
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_letter)) {
      return is_secret_name(own)
                 ? !is_made_harmless(word, own)
                 : !is_whole_name(own) && is_secret_name(std::string(word) + "_" + own);
    }
  }
  return is_secret_name(own);
}

std::vector<TextRange> values_in_sentence(std::string_view text, std::size_t at) {
  std::vector<TextRange> values;
  // The API key 'a' was replaced by 'b'.
  const std::size_t begin = skip_blanks(text, at);
  const auto quoted =
      begin > at && !quote_at(text, begin).empty() ? value_at(text, begin) : std::nullopt;
  if (quoted && skip_links(text, quoted->end) > quoted->end) {
    values.push_back(quoted->range);
    at = quoted->end;
  }
  const std::size_t linked = skip_links(text, at);
  add_values(text, linked, at, values);
  if (values.empty()) {
    add_values(text, skip_owner(text, at), at, values);
  }
  return values;
}

std::vector<TextRange> value_of_prompt(std::string_view text, std::size_t at) {
  constexpr std::size_t kLongestPrompt = 128;
  const std::size_t begin = skip_blanks(text, at);
  const std::size_t end = end_of_word(text, begin);
  std::string_view near = text.substr(0, end + kLongestPrompt);
  near = near.substr(0, end_of_line(near, end));
  const std::size_t colon = near.find(": ", end);
  if (begin == at || !contains_word(kOf, text.substr(begin, end - begin)) ||
      colon == std::string_view::npos || first_of(near, ",;", end) < colon) {
    return {};
  }
  const std::size_t value = skip_blanks(text, colon + 1);
  const std::string_view quote = quote_at(text, value);
  const std::size_t open = value + quote.size();
  if (!quote.empty()) {
    const std::size_t last = end_of_quote(text, open, quote);
    return last > open ? std::vector<TextRange>{{open, last}} : std::vector<TextRange>();
  }
  // All words up to the end of the line or a quote, if one of them may be a secret or is alone.
  bool good = false;
  std::size_t last = open;
  for (std::size_t word = open; word < near.size() && word == skip_blanks(near, last);) {
    const std::size_t end_of_own = end_of_sentence_word(text, word);
    if (end_of_own == word) {
      break;
    }
    good = good || looks_secret(text.substr(word, end_of_own - word)) ||
           (word == open && skip_white(near, end_of_own) >= near.size());
    last = end_of_own;
    word = skip_blanks(near, last);
  }
  return good ? std::vector<TextRange>{{open, last}} : std::vector<TextRange>();
}

bool looks_secret(std::string_view word) {
  if (word.size() < kLeastSecret) {
    return false;
  }
  if (!std::all_of(word.begin(), word.end(), [](char c) { return is_letter(c) || c == '-'; })) {
    return true;
  }
  const auto capitals = std::count_if(word.begin() + 1, word.end(), is_capital);
  const auto letters = std::count_if(word.begin(), word.end(), is_letter);
  return word.size() >= kLongWord || (capitals > 0 && capitals + 1 < letters);
}

}  // namespace trireme
