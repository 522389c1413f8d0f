#include "src/study/redaction/secret_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/program_text.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/secret_sentences.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestHash = 512;
constexpr std::size_t kLeastHash = 20;  // characters behind the last dollar
constexpr int kMostParts = 6;           // of a hash, between its dollars

bool is_alphabetic(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
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

std::vector<TextRange> unassigned_values(std::string_view text, std::string_view name,
                                         std::size_t begin, std::size_t end) {
  std::vector<TextRange> values;
  if (end < text.size() && (text[end] == '(' || text[end] == '{')) {
    if (const auto value = is_secret_name(name) ? value_in_brackets(text, end) : std::nullopt) {
      values.push_back(*value);
    }
    return values;
  }
  if (end == text.size() || !is_blank(text[end])) {
    return values;
  }
  if (is_named_in_sentence(text, begin, end)) {
    values = values_in_sentence(text, end);
    values = values.empty() && !is_loop_variable(text, begin) ? value_of_prompt(text, end)
                                                              : std::move(values);
  }
  if (values.empty() && is_secret_name(name)) {
    if (const auto value = value_of_env(text, begin, end)) {
      values.push_back(*value);
    }
  }
  std::erase_if(values, [&](const TextRange& value) {
    const std::string_view own = text.substr(value.begin, value.end - value.begin);
    // "the number of secrets is 128"
    const bool count = name.ends_with('s') && own.find_first_not_of("0123456789.,") == own.npos;
    return count || is_harmless_value(name, own);
  });
  return values;
}

bool begins_shell_assignment(std::string_view text, std::size_t at) {
  constexpr std::array<std::string_view, 10> kWords = {
      "export", "declare", "typeset", "local", "readonly", "env", "set", "ENV", "ARG", "sudo"};
  constexpr std::size_t kLongestLine = 255;
  std::string_view before = line_before(text, at);
  if (before.size() > kLongestLine) {
    return false;
  }
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
