#include "src/study/redaction/scalar_redaction.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestScalar = 65'536;  // bytes of a line

// Returns the place behind the dashes of list items and the blanks at the start of a line.
std::size_t behind_dashes(std::string_view text, std::size_t at) {
  while (at < text.size() &&
         (is_blank(text[at]) || (text[at] == '-' && at + 1 < text.size() && text[at + 1] == ' '))) {
    ++at;
  }
  return at;
}

// Returns the place behind the quote that closes a scalar, which is the only thing left in its line
// but a comment; or npos. open: the place of its first quote.
std::size_t end_of_scalar(std::string_view line, std::size_t open) {
  const char quote = line[open];
  std::size_t at = open + 1;
  for (; at < line.size(); ++at) {
    if (line[at] == '\\' && quote == '"') {
      ++at;
    } else if (line[at] == quote) {
      if (quote == '"' || !line.substr(at + 1).starts_with('\'')) {
        break;
      }
      ++at;
    }
  }
  if (at >= line.size()) {
    return std::string_view::npos;
  }
  const std::size_t rest = line.find_first_not_of(" \t\r", at + 1);
  const bool comment = rest != std::string_view::npos && line[rest] == '#' && rest > at + 1;
  return rest == std::string_view::npos || comment ? at + 1 : std::string_view::npos;
}

// Returns what a scalar in quotes means, or nothing if it has escapes that JSON does not have.
std::optional<std::string> meaning_of(std::string_view scalar) {
  if (scalar[0] == '"') {
    const auto parsed = nlohmann::json::parse(scalar, nullptr, false);
    return parsed.is_string() ? std::optional(parsed.get<std::string>()) : std::nullopt;
  }
  std::string plain;
  for (std::size_t at = 1; at + 1 < scalar.size(); ++at) {
    plain += scalar[at];
    at += scalar[at] == '\'' ? 1 : 0;
  }
  return plain;
}

std::string quoted_like(std::string_view scalar, const std::string& plain) {
  if (scalar[0] == '"') {
    return nlohmann::json(plain).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string result = "'";
  for (const char c : plain) {
    result += c == '\'' ? "''" : std::string{c};
  }
  return result + "'";
}

}  // namespace

std::optional<ScalarLine> redact_quoted_line(std::string_view text, std::size_t at) {
  const std::string_view near = text.substr(0, at + std::min(kLongestScalar, text.size() - at));
  const std::string_view line = near.substr(0, end_of_line(near, at));
  const std::size_t key = behind_dashes(line, at);
  const std::size_t end_of_key = end_of_word(line, key);
  std::size_t open = key;
  if (end_of_key > key) {
    if (!line.substr(end_of_key).starts_with(": ") ||
        is_secret_name(line.substr(key, end_of_key - key)) ||
        is_value_of_secret(text, key, end_of_key)) {
      return std::nullopt;
    }
    open = std::min(line.find_first_not_of(" \t", end_of_key + 1), line.size());
  }
  const bool item = std::string_view(line).substr(at, key - at).find('-') != line.npos;
  if ((end_of_key == key && !item) || open >= line.size() ||
      (line[open] != '"' && line[open] != '\'')) {
    return std::nullopt;
  }
  const std::size_t end = end_of_scalar(line, open);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view scalar = line.substr(open, end - open);
  const std::optional<std::string> plain = meaning_of(scalar);
  if (!plain) {
    return std::nullopt;
  }
  const Redacted value = redact(*plain);
  const bool same = value.text == *plain;
  return ScalarLine{end,
                    {std::string(line.substr(at, open - at)) +
                         (same ? std::string(scalar) : quoted_like(scalar, value.text)),
                     value.secrets}};
}

std::optional<ScalarLine> CommandItems::next(std::string_view text, std::size_t at) {
  const std::string option = std::move(option_);
  const std::string before = std::move(word_);
  option_.clear();
  word_.clear();
  const std::size_t dash = std::min(text.find_first_not_of(" \t", at), text.size());
  if (!text.substr(dash).starts_with("- ")) {
    curl_ = false;
    letter_ = 0;
    return std::nullopt;
  }
  if (dash - at != indentation_) {
    curl_ = false;
    letter_ = 0;
    indentation_ = dash - at;
  }
  std::size_t begin = skip_blanks(text, dash + 2);
  std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
  while (end > begin && is_blank(text[end - 1])) {
    --end;
  }
  const bool quoted = end > begin + 1 && (text[begin] == '"' || text[begin] == '\'') &&
                      text[end - 1] == text[begin];
  begin += quoted ? 1 : 0;
  end -= quoted ? 1 : 0;
  if (end <= begin || end - begin > kLongestScalar) {
    return std::nullopt;
  }
  const std::string own(text.substr(begin, end - begin));
  const std::string letters = {'-', letter_};
  const std::size_t user = curl_ ? behind_user_letter(option) : 0;
  const bool login = is_user_option(option) || (user > 0 && user == option.size());
  const bool secret =
      !option.empty() && !own.starts_with('-') &&
      (is_secret_option(option) || option == letters || (login && is_user_and_password(own)));
  word_ = own;
  option_ = own.starts_with('-') && own.find('=') == std::string::npos ? own : "";
  curl_ = curl_ || own == "curl" || own.ends_with("/curl");
  const char letter = password_option(own, before);
  letter_ = letter != 0 ? letter : letter_;
  if (!secret || own == kRedacted) {
    return std::nullopt;
  }
  return ScalarLine{end, {std::string(text.substr(at, begin - at)) + std::string(kRedacted), 1}};
}

}  // namespace trireme
