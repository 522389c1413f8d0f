#include "src/study/redaction/secret_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

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
// before it, as in "API key". The word "pass" alone is rather a part of a training step.
bool is_named_in_sentence(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string own(text.substr(begin, end - begin));
  const std::string lower = in_lower_case(own);
  if (lower == "pass" || lower.ends_with("pins")) {
    return false;
  }
  const std::string_view before = line_before(text, begin);
  if (before.size() > 1 && before.back() == ' ') {
    const std::string_view words = before.substr(0, before.size() - 1);
    const std::size_t blank = words.find_last_of(" \t\"'(,");
    const std::string_view word = words.substr(blank == std::string_view::npos ? 0 : blank + 1);
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_alphabetic)) {
      return is_secret_name(own)
                 ? !is_made_harmless(word, own)
                 : !is_whole_name(own) && is_secret_name(std::string(word) + "_" + own);
    }
  }
  return is_secret_name(own);
}

// Returns whether letters or digits follow the quote at `at`, as in hun"ter2.
bool is_quote_within_word(std::string_view text, std::size_t at) {
  return at + 1 < text.size() && (text[at] == '"' || text[at] == '\'') &&
         (is_alphabetic(text[at + 1]) || is_decimal(text[at + 1]));
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
  constexpr std::string_view kEnds = " \t\r\n\"'`,;)\\";
  std::size_t end = first_of_plain(text, kEnds, open);
  while (is_quote_within_word(text, end)) {
    end = first_of_plain(text, kEnds, end + 1);
  }
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
      quote.empty() ? first_of_plain(text, " \t\r\n\"'\\", open) : end_of_quote(text, open, quote);
  const bool alone = !quote.empty() || skip_white(near, last) >= near.size();
  const bool good = last > open && (alone || looks_secret(text.substr(open, last - open)));
  return good ? std::optional(TextRange{open, last}) : std::nullopt;
}

// Returns the value in password("X"), of which the name ends at `at`.
std::optional<TextRange> value_in_brackets(std::string_view text, std::size_t at) {
  const std::string_view quote = quote_at(text, at + 1);
  const std::size_t open = at + 1 + quote.size();
  const std::string_view near = text.substr(0, open + kLongestHash);
  const std::size_t end = quote.empty() ? open : std::min(near.find(quote, open), near.size());
  const std::string_view behind = text.substr(std::min(text.size(), end + quote.size()));
  const bool closed = behind.starts_with(text[at] == '(' ? ')' : '}');
  return end > open && closed && end < end_of_line(text, open) ? std::optional(TextRange{open, end})
                                                               : std::nullopt;
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
    return is_secret_name(name) ? value_in_brackets(text, end) : std::nullopt;
  }
  if (end == text.size() || !is_blank(text[end])) {
    return std::nullopt;
  }
  std::optional<TextRange> value;
  if (is_named_in_sentence(text, begin, end)) {
    value = value_in_sentence(text, end);
    value = value ? value : value_of_prompt(text, end);
  }
  if (!value && is_secret_name(name)) {
    value = value_of_env(text, begin, end);
  }
  if (!value) {
    return std::nullopt;
  }
  // "the number of secrets is 128"
  const std::string_view own = text.substr(value->begin, value->end - value->begin);
  const bool count = name.ends_with('s') && own.find_first_not_of("0123456789.,") == own.npos;
  return count || is_harmless_value(name, own) ? std::nullopt : value;
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
