#include "src/study/redaction/command_secrets.h"

#include <algorithm>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kNearCommand = 512;      // bytes of a line in which options are looked for
constexpr std::size_t kLongestCommand = 4096;  // bytes of a command on several lines

// Signs behind an option that a sentence mentions, as in "(see -u)".
constexpr std::string_view kBehindMention = ");]|>";

// Returns the end of the command line at `at`, which a backslash continues on the next line.
std::size_t end_of_command_line(std::string_view text, std::size_t at) {
  const std::string_view near = text.substr(0, at + kLongestCommand);
  std::size_t end = end_of_line(near, at);
  while (end > at && end < near.size() && near[end - 1] == '\\') {
    end = end_of_line(near, end + 1);
  }
  return end;
}

// Returns the place behind the letter in sshpass's options such as -p and -vpx, or 0.
std::size_t behind_flags(std::string_view word) {
  const std::size_t letter = word.find_first_not_of("veh", 1);
  return letter != std::string_view::npos && word[letter] == 'p' ? letter + 1 : 0;
}

// Returns whether a list such as [a, b] is open at the end of a text's last line.
bool open_list(std::string_view text) {
  const std::size_t least = text.size() > kNearCommand ? text.size() - kNearCommand : 0;
  std::string_view line = text.substr(least);
  line.remove_prefix(line.rfind('\n') + 1);
  const std::size_t open = line.rfind('[');
  return open != std::string_view::npos && line.find(']', open) == std::string_view::npos;
}

}  // namespace

std::optional<TextRange> CommandSecrets::next(const std::string& word, std::size_t begin,
                                              std::size_t end) {
  previous_ = std::move(latest_);
  latest_ = word;
  const auto secret = secret_of(word, begin, end);
  if (const char letter = secret ? '\0' : password_option(word, previous_); letter != 0) {
    letter_ = letter;
    joined_ = word == "sshpass";
    end_of_command_ = end + std::min(kNearCommand, text_.substr(end, kNearCommand).find('\n'));
  }
  if (word == "curl") {
    end_of_curl_ = end_of_command_line(text_, end);
  }
  return secret;
}

std::optional<TextRange> CommandSecrets::secret_of(const std::string& word, std::size_t begin,
                                                   std::size_t end) {
  if (begin > 0 && text_[begin - 1] == '`' && text_.substr(end).starts_with('`')) {
    return std::nullopt;  // a page tells of the option
  }
  if (begin < end_of_command_) {
    const bool apart = word == std::string{'-', letter_};
    const std::size_t letter = joined_ && word.starts_with('-') ? behind_flags(word) : 0;
    if (apart || letter > 0) {
      end_of_command_ = 0;
      return option_value(apart || letter == word.size() ? end : begin + letter);
    }
  }
  if (is_secret_option(word) && text_.substr(end).starts_with(", ") &&
      open_list(text_.substr(0, begin))) {
    const TextRange value = option_value(end);
    return text_.substr(value.begin).starts_with('-') ? std::nullopt : std::optional(value);
  }
  if (word == "ConvertTo-SecureString") {
    const std::size_t value = skip_blanks(text_, end);
    constexpr std::string_view kOption = "-String ";
    return option_value(text_.substr(value).starts_with(kOption) ? value + kOption.size() : end);
  }
  if (begin < end_of_curl_ && (word == "-b" || word == "-E" || word == "--cert")) {
    const TextRange value = option_value(end);
    const std::string_view own = text_.substr(value.begin, value.end - value.begin);
    return own.find(word == "-b" ? '=' : ':') < own.size() ? std::optional(value) : std::nullopt;
  }
  const std::size_t letters = begin < end_of_curl_ ? behind_user_letter(word) : 0;
  if (letters == 0 && !is_user_option(word)) {
    return std::nullopt;
  }
  const bool attached = letters > 0 && letters < word.size();
  if (!attached && end < text_.size() && kBehindMention.find(text_[end]) != kBehindMention.npos) {
    return std::nullopt;
  }
  const TextRange value = attached ? option_value(begin + letters) : option_value(end);
  const std::string_view own = text_.substr(value.begin, value.end - value.begin);
  return is_user_and_password(own) ? std::optional(value) : std::nullopt;
}

// Returns the value of an option that ends at `at`: joined to it, behind '=' or blanks, or the next
// word of a list.
TextRange CommandSecrets::option_value(std::size_t at) const {
  const std::size_t comma = skip_blanks(text_, at + quote_at(text_, at).size());
  const bool list = comma < text_.size() && text_[comma] == ',';
  const bool equals = at < text_.size() && text_[at] == '=';
  const std::size_t begin = skip_blanks(text_, list ? comma + 1 : at + (equals ? 1 : 0));
  const std::string_view quote = quote_at(text_, begin);
  const std::size_t open = begin + quote.size();
  const std::size_t close =
      quote.empty() ? first_of(text_, " \t\n\"',]", open) : end_of_quote(text_, open, quote);
  if (list) {
    return {open, close};
  }
  // A value that is one text in quotes keeps them.
  const std::size_t end = end_of_argument(text_, begin, open_quotes(text_, begin));
  return !quote.empty() && end <= close + quote.size() ? TextRange{open, std::min(close, end)}
                                                       : TextRange{begin, end};
}

}  // namespace trireme
