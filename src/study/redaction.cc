#include "src/study/redaction.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "src/study/assigned_text.h"
#include "src/study/secret_names.h"

namespace trireme {
namespace {

// The path after these is itself a secret: whoever knows it can post messages.
constexpr std::array<std::string_view, 3> kSecretPaths = {
    "hooks.slack.com/services/", "/api/webhooks/", "outlook.office.com/webhook/"};

struct Form {
  std::string_view begin;
  std::size_t least;  // characters behind it
};
constexpr std::array kForms = {
    Form{"hf_", 20},    Form{"ghp_", 20},     Form{"gho_", 20},      Form{"ghs_", 20},
    Form{"ghu_", 20},   Form{"ghr_", 20},     Form{"glpat-", 16},    Form{"github_pat_", 20},
    Form{"xoxb-", 16},  Form{"xoxp-", 16},    Form{"xoxa-", 16},     Form{"xapp-", 16},
    Form{"sk-", 20},    Form{"sk_live_", 16}, Form{"rk_live_", 16},  Form{"AKIA", 16},
    Form{"ASIA", 16},   Form{"AIza", 30},     Form{"ya29.", 20},     Form{"eyJ", 40},
    Form{"npm_", 30},   Form{"pypi-", 16},    Form{"dckr_pat_", 16}, Form{"hvs.", 20},
    Form{"nvapi-", 20}, Form{"gsk_", 20},     Form{"SG.", 30},       Form{"AGE-SECRET-KEY-", 20}};
constexpr std::size_t kNear = 512;  // bytes of a line in which words explain each other
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr std::string_view kPemKind = "PRIVATE KEY";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Scans a text from its begin to its end, and copies it without the secrets.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  Redacted run() {
    while (at_ < text_.size()) {
      if (!private_key() && !token_uri() && !user_in_url() && !secret_path() && !word()) {
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

  // Returns whether the text before `at` on its line consists of blanks and dashes of a list.
  bool begins_line(std::size_t at) const {
    while (at > 0 && (is_blank(text_[at - 1]) || text_[at - 1] == '-')) {
      --at;
    }
    return at == 0 || text_[at - 1] == '\n';
  }
  std::size_t end_of_line(std::size_t at) const {
    return std::min(text_.find('\n', at), text_.size());
  }
  // Returns the first of the characters, or the end of the text.
  std::size_t first_of(std::string_view characters, std::size_t at) const {
    return std::min(text_.find_first_of(characters, at), text_.size());
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
    const std::size_t dashes = end == std::string_view::npos ? end : text_.find("-----", end);
    replace_to(dashes == std::string_view::npos ? text_.size() : dashes + 5);
    return true;
  }

  // Handles the attributes of a PKCS#11 URI (RFC 7512), in which "token" is a label.
  bool token_uri() {
    if (!here("pkcs11:")) {
      return false;
    }
    const std::size_t end = first_of(" \t\n\"<>\\", at_);
    copy_to(at_ + 7);
    while (at_ < end) {
      const std::size_t next = std::min(first_of(";?&", at_), end);
      const std::size_t equals = std::min(first_of("=", at_), next);
      const std::string_view name = text_.substr(at_, equals - at_);
      if (equals < next && name != "token" && is_secret_name(name)) {
        const std::size_t last = std::min(first_of("&", at_), end);
        copy_to(equals + 1);
        replace_to(last);
      } else {
        copy_to(std::min(next + 1, end));
      }
    }
    return true;
  }

  // Handles the user and password of a URL. A password may hold any character that should have been
  // encoded, so the last @ counts. A port does not begin a password.
  bool user_in_url() {
    if (!here("://")) {
      return false;
    }
    copy_to(at_ + 3);
    const std::string_view url = text_.substr(at_, first_of(" \t\n\"'<>\\,", at_) - at_);
    const std::string_view authority = url.substr(0, url.find_first_of("/?#"));
    std::size_t end = authority.rfind('@');
    const std::size_t colon = authority.find(':');
    if (end == std::string_view::npos && colon != std::string_view::npos &&
        authority.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) {
      end = url.rfind('@');
    }
    if (end != std::string_view::npos) {
      replace_to(at_ + end);
    }
    return true;
  }

  bool secret_path() {
    const auto path = std::find_if(kSecretPaths.begin(), kSecretPaths.end(),
                                   [&](std::string_view each) { return here(each); });
    if (path == kSecretPaths.end()) {
      return false;
    }
    copy_to(at_ + path->size());
    replace_to(first_of(" \t\n\"'<>\\", at_));
    return true;
  }

  // Handles a word: a key of a known form, or a name that may have a secret value.
  bool word() {
    const std::size_t begin = at_;
    const std::size_t end = end_of_word(text_, at_);
    if (end == begin) {
      return false;
    }
    const std::string name = plain_word(text_.substr(begin, end - begin));
    const bool key = std::any_of(kForms.begin(), kForms.end(), [&](const Form& form) {
      return name.starts_with(form.begin) && name.size() >= form.begin.size() + form.least;
    });
    if (key) {
      replace_to(end);
    } else if (begin < end_of_sshpass_ && name.starts_with("-p")) {
      sshpass_option(begin);
    } else {
      copy_to(end);
      end_of_sshpass_ = name == "sshpass"
                            ? end + std::min(kNear, text_.substr(end, kNear).find('\n'))
                            : end_of_sshpass_;
      if (name == "Bearer" || name == "bearer") {
        bearer();
      } else if (name == "-u" || name == "--user" || name == "--proxy-user") {
        user_and_password();
      } else {
        value_of(name, begin);
      }
    }
    previous_ = name;
    return true;
  }

  // Handles `sshpass -p secret`, `sshpass -psecret`, and the same as an array of words.
  void sshpass_option(std::size_t begin) {
    std::size_t open = begin + 2;
    if (open == end_of_word(text_, begin)) {
      open = skip_blanks(text_, open + quote_at(text_, open).size());
      open += open < text_.size() && text_[open] == ',' ? 1 : 0;
      open = skip_blanks(text_, open);
    }
    const std::string_view quote = quote_at(text_, open);
    open += quote.size();
    const std::size_t end = quote.empty() ? first_of(" \t\n\"'", open) : end_of_quote(open, quote);
    copy_to(open);
    replace_to(end);
    end_of_sshpass_ = 0;
  }

  void bearer() {
    const std::size_t begin = skip_blanks(text_, at_);
    const std::size_t end = first_of(" \t\n\"',;\\", begin);
    if (begin > at_ && end >= begin + 8) {
      copy_to(begin);
      replace_to(end);
    }
  }

  // Handles `curl -u jane:secret`, but not `docker run -u 1000:1000`.
  void user_and_password() {
    const std::size_t begin =
        skip_blanks(text_, at_ < text_.size() && text_[at_] == '=' ? at_ + 1 : at_);
    const std::size_t open = begin + quote_at(text_, begin).size();
    const std::size_t end = first_of(" \t\n\"'", open);
    const std::string_view value = text_.substr(open, end - open);
    if (begin > at_ && value.find(':') != std::string_view::npos &&
        value.find_first_not_of("0123456789:") != std::string_view::npos) {
      copy_to(open);
      replace_to(end);
    }
  }

  // Replaces the value behind a secret name, if there is one. begin: of the name.
  void value_of(std::string_view name, std::size_t begin) {
    const char before = begin == 0 ? '\n' : text_[begin - 1];
    const bool parameter = before == '?' || before == '&';
    const std::string_view quote_behind = quote_at(text_, at_);
    std::size_t at = at_ + quote_behind.size();
    at = quote_behind.empty() ? skip_blanks(text_, at) : skip_white(text_, at);
    const char next = at < text_.size() ? text_[at] : '\n';
    const bool tag = before == '<' && next == '>';
    const bool assigned =
        next == ':' || next == '=' || tag || (!quote_behind.empty() && is_pair(at));
    if (!assigned && at == at_) {
      return;
    }
    const bool quoted_auth = name == "auth" && !quote_behind.empty() && next == ':';
    if (!quoted_auth && !is_secret_name(name) && !(parameter && is_secret_parameter(name)) &&
        !(assigned && is_value_of_secret(text_, begin, at_))) {
      return;
    }
    // Also in csh and in ~/.netrc.
    const bool option =
        at > at_ && (name.starts_with("--") || previous_ == "setenv" || netrc(begin));
    if (!assigned && !option) {
      return;
    }
    at = skip_blanks(text_, assigned ? at + 1 : at);
    if (const std::size_t below = skip_white(text_, at); below > at && begins_json(below)) {
      at = next == ':' ? below : at;
    }
    if (next == ':' && is_block(at)) {
      replace_block(begin - (quote_behind.empty() ? 0 : 1));
      return;
    }
    const std::string_view quote = tag ? std::string_view() : quote_at(text_, at);
    const std::size_t open = at + quote.size();
    const std::size_t end =
        tag ? first_of("<", open) : end_of_value(open, quote, name, next, begin);
    if (end > open) {
      copy_to(open);
      replace_to(end);
    }
  }

  // Returns whether a comma at this place is followed by a quoted text that is no key, as in
  // ("WANDB_API_KEY", "x").
  bool is_pair(std::size_t comma) const {
    if (comma >= text_.size() || text_[comma] != ',') {
      return false;
    }
    const std::size_t begin = skip_white(text_, comma + 1);
    const std::string_view quote = quote_at(text_, begin);
    if (quote.empty()) {
      return false;
    }
    const std::size_t end = end_of_quote(begin + quote.size(), quote);
    const std::size_t next = skip_white(text_, end + quote_at(text_, end).size());
    return next >= text_.size() || text_[next] != ':';
  }

  // Returns whether a value of JSON begins here, which may stand below its key.
  bool begins_json(std::size_t at) const {
    return at < text_.size() &&
           (std::string_view("[{\"").find(text_[at]) != std::string_view::npos ||
            text_.substr(at).starts_with(kRedacted));
  }

  bool netrc(std::size_t begin) const {
    const std::size_t least = begin > kNear ? begin - kNear : 0;
    std::string_view before = text_.substr(least, begin - least);
    before.remove_prefix(before.rfind('\n') + 1);
    return before.find("machine ") != std::string_view::npos ||
           before.find("login ") != std::string_view::npos;
  }

  // Returns whether a value in YAML begins on the next line.
  bool is_block(std::size_t at) const {
    const std::string_view rest = text_.substr(at, end_of_line(at) - at);
    return rest.find_first_not_of("|>+-0123456789 \t\r") == std::string_view::npos &&
           end_of_line(at) < text_.size() &&
           (rest.empty() || rest == "\r" || rest[0] == '|' || rest[0] == '>');
  }

  // Replaces the lines that are indented deeper than the key, and lists that are not.
  void replace_block(std::size_t begin) {
    const std::size_t line = text_.rfind('\n', begin);
    const std::size_t indent = begin - (line == std::string_view::npos ? 0 : line + 1);
    copy_to(std::min(end_of_line(at_) + 1, text_.size()));
    std::size_t end = at_;
    while (end < text_.size()) {
      const std::size_t first = text_.find_first_not_of(" \t", end);
      const std::size_t deep = first == std::string_view::npos ? 0 : first - end;
      const bool list = first != std::string_view::npos && text_.substr(first).starts_with("- ");
      if (first == std::string_view::npos ||
          !(deep > indent || (deep == indent && list) || text_[first] == '\n')) {
        break;
      }
      end = std::min(end_of_line(first) + 1, text_.size());
    }
    if (end > at_) {
      const bool newline = text_[end - 1] == '\n';
      replace_to(newline ? end - 1 : end);
    }
  }

  // Returns the place behind the bracket that closes the one at `begin`, or the end of the line.
  std::size_t end_of_brackets(std::size_t begin) const {
    int depth = 0;
    for (std::size_t at = begin; at < text_.size(); ++at) {
      depth += text_[at] == '[' || text_[at] == '{' ? 1 : 0;
      depth -= text_[at] == ']' || text_[at] == '}' ? 1 : 0;
      if (depth == 0) {
        return at + 1;
      }
    }
    return end_of_line(begin);
  }

  // Returns the place of the quote that ends a text: one with as many backslashes as that at its
  // begin, or three. Lines that follow belong to the text if they are indented.
  std::size_t end_of_quote(std::size_t begin, std::string_view quote) const {
    const std::string three(3, quote.back());
    if (quote.size() == 1 && begin > 0 && text_.substr(begin - 1).starts_with(three)) {
      return std::min(text_.find(three, begin + 2), text_.size());
    }
    std::size_t slashes = 0;
    for (std::size_t at = begin; at < text_.size(); ++at) {
      const bool goes_on = at + 1 < text_.size() && (slashes > 0 || is_blank(text_[at + 1]));
      if (text_[at] == '\n' && !goes_on) {
        return at;
      }
      if (text_[at] == '\\') {
        ++slashes;
      } else if (text_[at] == quote.back() && slashes + 1 == quote.size()) {
        return at - slashes;
      } else {
        slashes = 0;
      }
    }
    return text_.size();
  }

  std::size_t end_of_value(std::size_t begin, std::string_view quote, std::string_view name,
                           char assignment, std::size_t name_begin) const {
    if (!quote.empty()) {
      return end_of_quote(begin, quote);
    }
    if (begin < text_.size() && (text_[begin] == '[' || text_[begin] == '{')) {
      return end_of_brackets(begin);
    }
    // Headers such as "Authorization: Basic dXNlcjp..." have blanks.
    if (name.ends_with("ookie")) {
      return end_of_line(begin);
    }
    if (name.ends_with("uthorization")) {
      return first_of("\n\"'", begin);
    }
    // So have values in YAML, and in listings of the environment.
    std::size_t end = end_of_line(begin);
    if ((assignment == ':' || assignment == '=') && begins_line(name_begin)) {
      while (end > begin && text_[end - 1] == '\\' && end < text_.size()) {
        end = end_of_line(end + 1);
      }
      return end;
    }
    return first_of(assignment == ':' ? "\t\n,;&}]\"'\\" : " \t\n,;&}]\"'\\", begin);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string previous_;            // word
  std::size_t end_of_sshpass_ = 0;  // of the line whose sshpass still lacks its option -p
  Redacted result_;
};

}  // namespace

Redacted redact(std::string_view text) { return Scan(text).run(); }

}  // namespace trireme
