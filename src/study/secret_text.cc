#include "src/study/secret_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "src/study/assigned_text.h"
#include "src/study/secret_names.h"
#include "src/study/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestHash = 512;
constexpr std::size_t kLeastHash = 20;   // characters behind the last dollar
constexpr std::size_t kNearWords = 256;  // bytes of a line in which words explain a name
constexpr std::size_t kLongWord = 16;    // letters that are no ordinary word
constexpr std::size_t kLeastSecret = 3;  // characters in a sentence
constexpr int kMostParts = 6;            // of a hash, between its dollars
constexpr int kMostLinks = 4;            // words between a name and its value

bool is_alphabetic(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_capital(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool is_decimal(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// Skips dollars and the backslashes before them.
std::size_t skip_dollars(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && (text[end] == '$' || text[end] == '\\')) {
    ++end;
  }
  return end > at && text[end - 1] == '$' ? end : at;
}

bool is_hash_character(char c) {
  return is_alphabetic(c) || is_decimal(c) ||
         std::string_view("./=,+_-").find(c) != std::string_view::npos;
}

std::string in_lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

// Returns the line up to `at`, or the last bytes of it.
std::string_view line_before(std::string_view text, std::size_t at) {
  const std::size_t least = at > kNearWords ? at - kNearWords : 0;
  std::string_view before = text.substr(least, at - least);
  return before.substr(before.rfind('\n') + 1);
}

// Returns whether the words at [begin, end) name a secret in a sentence: one word, or with the one
// before it, as in "API key".
bool is_named_in_sentence(std::string_view text, std::size_t begin, std::size_t end) {
  std::string name(text.substr(begin, end - begin));
  const std::string_view before = line_before(text, begin);
  if (before.size() > 1 && before.back() == ' ') {
    const std::string_view words = before.substr(0, before.size() - 1);
    const std::size_t blank = words.find_last_of(" \t\"'(,");
    const std::string_view word = words.substr(blank == std::string_view::npos ? 0 : blank + 1);
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_alphabetic)) {
      name = std::string(word) + "_" + name;
    }
  }
  const std::string lower = in_lower_case(name);
  return is_secret_name(name) && !lower.ends_with("pass") && !lower.ends_with("pins");
}

// Returns the value in a sentence of which the name ends at `at`.
std::optional<TextRange> value_in_sentence(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 7> kLinks = {"is",  "was",    "are",    "to",
                                                      "ist", "lautet", "becomes"};
  constexpr std::array<std::string_view, 7> kMore = {"now",  "set", "changed", "reset",
                                                     "been", "has", "still"};
  bool linked = false;
  for (int word = 0; word < kMostLinks; ++word) {
    const std::size_t begin = skip_blanks(text, at);
    const std::size_t end = end_of_word(text, begin);
    const std::string_view own = text.substr(begin, std::min(end - begin, kNearWords));
    const bool link = is_among(kLinks, own);
    if (begin == at || (!link && !is_among(kMore, own))) {
      break;
    }
    linked = linked || link;
    at = end;
  }
  for (const std::string_view arrow : {"->", "\u2192"}) {
    const std::size_t sign = skip_blanks(text, at);
    if (!linked && sign > at && text.substr(sign).starts_with(arrow)) {
      linked = true;
      at = sign + arrow.size();
    }
  }
  const std::size_t colon = at + (linked && at < text.size() && text[at] == ':' ? 1 : 0);
  const std::size_t begin = skip_blanks(text, colon);
  if (!linked || begin == colon || begin >= text.size()) {
    return std::nullopt;
  }
  const std::string_view quote = text[begin] == '`' ? text.substr(begin, 1) : quote_at(text, begin);
  const std::size_t open = begin + quote.size();
  if (!quote.empty()) {
    const std::string_view near = text.substr(0, open + kLongestHash);
    const std::size_t end = std::min(near.find(quote, open), end_of_line(near, open));
    return end > open ? std::optional(TextRange{open, end}) : std::nullopt;
  }
  std::size_t end = first_of(text, " \t\r\n\"'`,;<>)\\", open);
  while (end > open && std::string_view(".:!?").find(text[end - 1]) != std::string_view::npos) {
    --end;
  }
  return looks_secret(text.substr(open, end - open)) ? std::optional(TextRange{open, end})
                                                     : std::nullopt;
}

// Returns the value behind the colon in "password for root: X", of which the name ends at `at`.
std::optional<TextRange> value_of_prompt(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 9> kOf = {"for", "of", "on", "at", "in",
                                                   "to",  "by", "as", "von"};
  constexpr std::size_t kLongestPrompt = 128;
  const std::size_t begin = skip_blanks(text, at);
  const std::size_t end = end_of_word(text, begin);
  std::string_view near = text.substr(0, end + kLongestPrompt);
  near = near.substr(0, end_of_line(near, end));
  const std::size_t colon = near.find(": ", end);
  if (begin == at || !is_among(kOf, text.substr(begin, end - begin)) ||
      colon == std::string_view::npos || first_of(near, ",;", end) < colon) {
    return std::nullopt;
  }
  const std::size_t value = skip_blanks(text, colon + 1);
  const std::string_view quote = quote_at(text, value);
  const std::size_t open = value + quote.size();
  const std::size_t last =
      quote.empty() ? first_of(text, " \t\r\n\"'\\", open) : end_of_quote(text, open, quote);
  const bool alone = !quote.empty() || skip_white(near, last) >= near.size();
  const bool good = last > open && (alone || looks_secret(text.substr(open, last - open)));
  return good ? std::optional(TextRange{open, last}) : std::nullopt;
}

// Returns the word that follows a name, which ends at `at`, as in "the passwd X9z". It must have
// digits, signs or capitals within, and be neither a path nor an operator. Numbers behind "token"
// count them.
std::optional<TextRange> value_behind_blank(std::string_view text, std::string_view name,
                                            std::size_t at) {
  const std::size_t begin = skip_blanks(text, at);
  std::size_t end = first_of(text, " \t\r\n\"'`,;<>)\\", begin);
  while (end > begin && std::string_view(".:!?").find(text[end - 1]) != std::string_view::npos) {
    --end;
  }
  const std::string_view word = text.substr(begin, end - begin);
  const bool attribute = word.ends_with('=') && !quote_at(text, end).empty();
  if (word.size() < kLeastSecret || attribute || assignment_at(text, begin) > 0 ||
      std::string_view("/.~-(<[{|&%").find(word[0]) != std::string_view::npos) {
    return std::nullopt;
  }
  const bool digits = std::any_of(word.begin(), word.end(), is_decimal);
  const bool number = word.find_first_not_of("0123456789.") == std::string_view::npos;
  // Neither PIN nor PINs.
  const bool capitals = std::any_of(word.begin() + 1, word.end(), is_capital) &&
                        !std::all_of(word.begin(), word.end() - (word.back() == 's' ? 1 : 0),
                                     [](char c) { return is_capital(c) || c == '_'; });
  const bool signs = word.find_first_of("!#$%^&*+=@") != std::string_view::npos;
  const std::string own = in_lower_case(name);
  const bool counts = own.ends_with("token") || own.ends_with("tokens");
  return (digits || capitals || signs) && !(number && counts) ? std::optional(TextRange{begin, end})
                                                              : std::nullopt;
}

// Returns the value of a name that has a line for itself and its value.
std::optional<TextRange> value_behind_tab(std::string_view text, std::size_t begin,
                                          std::size_t end) {
  std::size_t value = end;
  while (value < text.size() && is_blank(text[value])) {
    ++value;
  }
  const std::string_view gap = text.substr(end, value - end);
  const bool tab = gap.find('\t') != std::string_view::npos;
  if ((!tab && gap.size() < 2) || value == text.size() || !begins_line(text, begin) ||
      assignment_at(text, value) > 0) {
    return std::nullopt;
  }
  std::size_t last = std::min(text.find_first_of("\r\n", value), text.size());
  while (last > value && is_blank(text[last - 1])) {
    --last;
  }
  const std::string_view own = text.substr(value, last - value);
  // Several columns are those of a table.
  const bool one = own.find_first_of(tab ? "\t" : " \t") == std::string_view::npos;
  return !own.empty() && one ? std::optional(TextRange{value, last}) : std::nullopt;
}

// Returns the value in "password(X)", of which the name ends at `at`. Words that may be a variable
// of a program, as in a stack trace, are none.
std::optional<TextRange> value_in_brackets(std::string_view text, std::string_view name,
                                           std::size_t at) {
  constexpr std::array<std::string_view, 4> kNames = {"password", "passwd", "passphrase",
                                                      "passcode"};
  constexpr std::size_t kLeast = 6;
  if (!is_among(kNames, in_lower_case(name))) {
    return std::nullopt;
  }
  const std::string_view quote = quote_at(text, at + 1);
  if (quote.empty() && text[at] == '{') {
    return std::nullopt;
  }
  const std::size_t open = at + 1 + quote.size();
  const std::string_view near = text.substr(0, open + kLongestHash);
  const std::size_t end = quote.empty() ? first_of(near, " \t\r\n\"'`,;<>().[_", open)
                                        : first_of(near, " \t\r\n\"'`\\", open);
  const std::string_view value = text.substr(open, end - open);
  const std::string_view behind = text.substr(std::min(text.size(), end + quote.size()));
  const bool closed = behind.starts_with(text[at] == '(' ? ')' : '}');
  const bool good =
      closed && (quote.empty() ? value.size() >= kLeast &&
                                     std::any_of(value.begin(), value.end(), is_decimal) &&
                                     std::any_of(value.begin(), value.end(), is_alphabetic)
                               : !value.empty());
  return good ? std::optional(TextRange{open, end}) : std::nullopt;
}

// Returns the value in a line of a Dockerfile.
std::optional<TextRange> value_of_env(std::string_view text, std::size_t begin, std::size_t end) {
  std::string_view before = line_before(text, begin);
  before.remove_prefix(std::min(before.find_first_not_of(" \t"), before.size()));
  const std::size_t value = skip_blanks(text, end);
  if (!before.starts_with("ENV") || before.find_first_not_of(" \t", 3) != std::string_view::npos ||
      before.size() < 4 || value == end || value >= text.size() || text[value] == '\n') {
    return std::nullopt;
  }
  std::size_t last = end_of_line(text, value);
  while (last < text.size() && last > value &&
         (text[last - 1] == '\\' || text.substr(last - 2, 2) == "\\\r")) {
    last = end_of_line(text, last + 1);
  }
  last -= last > value && text[last - 1] == '\r' ? 1 : 0;
  return last > value ? std::optional(TextRange{value, last}) : std::nullopt;
}

}  // namespace

std::size_t end_of_private_key(std::string_view text, std::size_t at) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kKind = "PRIVATE KEY";
  const std::size_t kind = text.substr(at).starts_with(kBegin) ? text.find(kKind, at) : text.npos;
  if (kind == std::string_view::npos || kind - at > 40) {
    return at;
  }
  const std::size_t last = text.find("-----END ", kind);
  const std::size_t end = last == std::string_view::npos ? last : text.find(kKind, last);
  const std::size_t dashes = end == std::string_view::npos ? end : text.find("-----", end);
  return dashes == std::string_view::npos ? text.size() : dashes + 5;
}

std::size_t end_of_crypt_hash(std::string_view text, std::size_t at) {
  constexpr std::string_view kKinds =
      " 1 2 2a 2b 2x 2y 5 6 7 y gy apr1 md5 sha1 scrypt argon2 argon2d argon2i argon2id pbkdf2 "
      "pbkdf2-sha256 pbkdf2-sha512 ";
  const std::string_view near = text.substr(0, at + std::min(kLongestHash, text.size() - at));
  const std::size_t kind = skip_dollars(near, at);
  std::size_t end = kind;
  while (end < near.size() && is_hash_character(near[end])) {
    ++end;
  }
  const std::string word = " " + std::string(near.substr(kind, end - kind)) + " ";
  if (kind == at || kKinds.find(word) == std::string_view::npos) {
    return at;
  }
  std::size_t last = 0;  // characters behind the last dollar
  int parts = 0;
  for (std::size_t next = skip_dollars(near, end); next > end && parts <= kMostParts;
       next = skip_dollars(near, end)) {
    for (end = next; end < near.size() && is_hash_character(near[end]);) {
      ++end;
    }
    last = end - next;
    ++parts;
  }
  return parts > 1 && parts <= kMostParts && last >= kLeastHash ? end : at;
}

std::optional<TextRange> unassigned_value(std::string_view text, std::string_view name,
                                          std::size_t begin, std::size_t end) {
  if (end < text.size() && (text[end] == '(' || text[end] == '{')) {
    return value_in_brackets(text, name, end);
  }
  if (end == text.size() || !is_blank(text[end])) {
    return std::nullopt;
  }
  const bool tag = begin > 0 && text[begin - 1] == '<';
  const bool named = !tag && is_named_in_sentence(text, begin, end);
  std::optional<TextRange> value;
  if (named) {
    value = value_in_sentence(text, end);
    value = value ? value : value_of_prompt(text, end);
  }
  if (!value && is_secret_name(name)) {
    value = value_of_env(text, begin, end);
    value = value ? value : value_behind_tab(text, begin, end);
  }
  const std::string last = in_lower_case(name);
  if (!value && named && (is_secret_name(name) || last == "key" || last == "keys")) {
    value = value_behind_blank(text, name, end);
  }
  const bool harmless =
      value && is_harmless_value(name, text.substr(value->begin, value->end - value->begin));
  return harmless ? std::nullopt : value;
}

bool looks_secret(std::string_view word) {
  if (word.size() < kLeastSecret) {
    return false;
  }
  if (!std::all_of(word.begin(), word.end(), [](char c) { return is_alphabetic(c) || c == '-'; })) {
    return true;
  }
  const auto capitals = std::count_if(word.begin() + 1, word.end(), is_capital);
  const auto letters = std::count_if(word.begin(), word.end(), is_alphabetic);
  return word.size() >= kLongWord || (capitals > 0 && capitals + 1 < letters);
}

bool begins_shell_assignment(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 10> kWords = {
      "export", "declare", "typeset", "local", "readonly", "env", "set", "ENV", "ARG", "sudo"};
  if (at > kNearWords &&
      text.substr(at - kNearWords, kNearWords).find('\n') == std::string_view::npos) {
    return false;
  }
  std::string_view before = line_before(text, at);
  while (!before.empty()) {
    const std::size_t begin = before.find_first_not_of(" \t");
    if (begin == std::string_view::npos) {
      return true;
    }
    const std::string_view word = before.substr(begin, before.find_first_of(" \t", begin) - begin);
    if (!is_among(kWords, word) && word[0] != '-' && word.find('=') == std::string_view::npos) {
      return false;
    }
    before.remove_prefix(begin + word.size());
  }
  return true;
}

}  // namespace trireme
