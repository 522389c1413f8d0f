#include "src/study/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace trireme {
namespace {

constexpr std::array<std::string_view, 14> kSecretEnds = {
    "password",   "passwd",      "passphrase",    "secret",     "secret_key",
    "api_key",    "apikey",      "access_key",    "privatekey", "private_key",
    "credential", "credentials", "authorization", "cookie"};
// Tokens of text, and rates per token.
constexpr std::array<std::string_view, 8> kHarmlessTokens = {"bos_token",  "eos_token", "unk_token",
                                                             "pad_token",  "cls_token", "sep_token",
                                                             "mask_token", "per_token"};

struct Form {
  std::string_view begin;
  std::size_t least;  // characters behind it
};
constexpr std::array kForms = {Form{"hf_", 20},   Form{"ghp_", 20},   Form{"gho_", 20},
                               Form{"ghs_", 20},  Form{"glpat-", 16}, Form{"github_pat_", 20},
                               Form{"xoxb-", 16}, Form{"xoxp-", 16},  Form{"sk-", 20},
                               Form{"AKIA", 16},  Form{"eyJ", 40}};
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr std::string_view kPemKind = "PRIVATE KEY-----";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

bool is_secret_name(std::string_view name) {
  std::string lower;
  for (const char c : name.substr(name.rfind('.') + 1)) {
    lower += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  const auto ends = [&](std::string_view end) { return lower.ends_with(end); };
  const bool token = (lower == "token" || ends("_token")) &&
                     std::none_of(kHarmlessTokens.begin(), kHarmlessTokens.end(), ends);
  return token || std::any_of(kSecretEnds.begin(), kSecretEnds.end(), ends);
}

// Scans a text from its begin to its end, and copies it without the secrets.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  Redacted run() {
    while (at_ < text_.size()) {
      if (!private_key() && !user_in_url() && !word()) {
        result_.text += text_[at_++];
      }
    }
    return std::move(result_);
  }

 private:
  bool here(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  void copy_to(std::size_t end) {
    result_.text += text_.substr(at_, end - at_);
    at_ = end;
  }

  // Replaces the text up to `end`.
  void replace_to(std::size_t end) {
    if (text_.substr(at_, end - at_) != kRedacted) {
      ++result_.secrets;
    }
    result_.text += kRedacted;
    at_ = end;
  }

  bool private_key() {
    if (!here(kPemBegin)) {
      return false;
    }
    const std::size_t kind = text_.find(kPemKind, at_);
    if (kind == std::string_view::npos || kind - at_ > 40) {
      return false;
    }
    const std::size_t last = text_.find("-----END ", kind);
    const std::size_t end = last == std::string_view::npos ? last : text_.find(kPemKind, last);
    replace_to(end == std::string_view::npos ? text_.size() : end + kPemKind.size());
    return true;
  }

  bool user_in_url() {
    if (!here("://")) {
      return false;
    }
    const std::size_t begin = at_ + 3;
    const std::size_t end = text_.find_first_of("/@ \t\n\"'<>", begin);
    copy_to(begin);
    if (end != std::string_view::npos && text_[end] == '@') {
      replace_to(end);
    }
    return true;
  }

  // Handles a word: a key of a known form, or a name that may have a secret value.
  bool word() {
    if (!is_word(text_[at_])) {
      return false;
    }
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) {
      ++end;
    }
    const std::string_view name = text_.substr(at_, end - at_);
    const bool key = std::any_of(kForms.begin(), kForms.end(), [&](const Form& form) {
      return name.starts_with(form.begin) && name.size() >= form.begin.size() + form.least;
    });
    if (key) {
      replace_to(end);
      return true;
    }
    copy_to(end);
    if (name == "Bearer") {
      bearer();
    } else if (is_secret_name(name)) {
      value_of(name);
    }
    return true;
  }

  void bearer() {
    std::size_t begin = at_;
    while (begin < text_.size() && is_blank(text_[begin])) {
      ++begin;
    }
    const std::size_t end = std::min(text_.find_first_of(" \t\n\"',;\\", begin), text_.size());
    if (begin > at_ && end >= begin + 8) {
      copy_to(begin);
      replace_to(end);
    }
  }

  // Skips backslashes, as in JSON within JSON, and a quote behind them. Returns what was skipped.
  std::string_view quote_at(std::size_t at) const {
    std::size_t end = at;
    while (end < text_.size() && text_[end] == '\\') {
      ++end;
    }
    const bool quote = end < text_.size() && (text_[end] == '"' || text_[end] == '\'');
    return quote ? text_.substr(at, end + 1 - at) : std::string_view();
  }

  std::size_t skip_blanks(std::size_t at) const {
    while (at < text_.size() && is_blank(text_[at])) {
      ++at;
    }
    return at;
  }

  // Replaces the value behind a secret name, if there is one.
  void value_of(std::string_view name) {
    std::size_t at = skip_blanks(at_ + quote_at(at_).size());
    const bool assigned = at < text_.size() && (text_[at] == ':' || text_[at] == '=');
    const bool option = name.starts_with("--") && at > at_;
    if (!assigned && !option) {
      return;
    }
    at = skip_blanks(assigned ? at + 1 : at);
    const std::string_view quote = quote_at(at);
    const std::size_t begin = at + quote.size();
    const std::size_t end = end_of_value(begin, quote, name);
    if (end > begin) {
      copy_to(begin);
      replace_to(end);
    }
  }

  std::size_t end_of_value(std::size_t begin, std::string_view quote, std::string_view name) const {
    const std::size_t line = std::min(text_.find('\n', begin), text_.size());
    if (!quote.empty()) {
      return std::min(text_.find(quote, begin), line);
    }
    // A header such as "Authorization: Basic dXNlcjp..." and a list have blanks.
    const bool whole_line = name.ends_with("uthorization") || name.ends_with("ookie");
    if (whole_line || (begin < text_.size() && (text_[begin] == '[' || text_[begin] == '{'))) {
      return line;
    }
    return std::min(text_.find_first_of(" \t\n,;&}]\"'", begin), text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Redacted result_;
};

}  // namespace

Redacted redact(std::string_view text) { return Scan(text).run(); }

}  // namespace trireme
