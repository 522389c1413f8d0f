#include "src/study/redaction.h"

#include <algorithm>
#include <array>
#include <optional>

#include "src/study/assigned_text.h"
#include "src/study/json_redaction.h"
#include "src/study/secret_names.h"
#include "src/study/secret_text.h"
#include "src/study/table_redaction.h"
#include "src/study/value_text.h"

namespace trireme {
namespace {

// The path after these is itself a secret: whoever knows it can post messages.
constexpr std::array<std::string_view, 4> kSecretPaths = {
    "hooks.slack.com/services/", "/api/webhooks/", "outlook.office.com/webhook/", "/webhookb2/"};

constexpr std::size_t kLongestElement = 16'384;  // bytes in which its end tag is looked for
constexpr std::size_t kNear = 512;  // bytes of a line in which words explain each other
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr std::string_view kPemKind = "PRIVATE KEY";

// Scans a text from its begin to its end, and copies it without the secrets.
class RedactionScan {
 public:
  explicit RedactionScan(std::string_view text)
      : text_(text), left_to_examine_(4 * text.size() + 4096) {}

  Redacted run() {
    while (at_ < text_.size()) {
      enter_table();
      if (!json() && !private_key() && !token_uri() && !user_in_url() && !secret_path() &&
          !crypt_hash() && !word()) {
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

  // Handles a value of JSON, also one within a line. Where many begin that end nowhere, the rest is
  // taken for plain text.
  bool json() {
    const char c = text_[at_];
    if ((c != '{' && c != '[' && (c != '"' || at_ > 0)) || examined_ > left_to_examine_) {
      return false;
    }
    const auto end = end_of_json(text_, at_, examined_);
    const bool whole = end && text_.find_first_not_of(" \t\r\n", *end) == std::string_view::npos;
    if (!end || (c == '"' && !whole)) {
      return false;
    }
    result_.secrets += redact_json(text_.substr(at_, *end - at_), result_.text);
    at_ = *end;
    return true;
  }

  // Notes that a table of TOML such as [db.secrets] begins here, all values of which are secrets.
  void enter_table() {
    if (text_[at_] != '[' || (at_ > 0 && text_[at_ - 1] != '\n')) {
      return;
    }
    std::size_t begin = std::min(text_.find_first_not_of("[ \t\"'", at_), text_.size());
    const std::size_t end = end_of_word(text_, begin);
    const std::size_t rest = std::min(text_.find_first_not_of("] \t\"'\r", end), text_.size());
    if (is_secret_name(text_.substr(begin, end - begin)) && rest > end &&
        (rest == text_.size() || text_[rest] == '\n' || text_[rest] == '#')) {
      end_of_table_ = std::min(text_.find("\n[", rest), text_.size());
    }
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
    const std::size_t end = first_of(text_, " \t\n\"<>\\", at_);
    copy_to(at_ + 7);
    while (at_ < end) {
      const std::size_t next = std::min(first_of(text_, ";?&", at_), end);
      const std::size_t equals = std::min(first_of(text_, "=", at_), next);
      const std::string_view name = text_.substr(at_, equals - at_);
      if (equals < next && name != "token" && is_secret_name(name)) {
        const std::size_t last = std::min(first_of(text_, "&", at_), end);
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
    const std::string_view url = text_.substr(at_, first_of(text_, " \t\n\"'<>\\,", at_) - at_);
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
    replace_to(first_of(text_, " \t\n\"'<>\\", at_));
    return true;
  }

  bool crypt_hash() {
    const std::size_t end = text_[at_] == '$' ? end_of_crypt_hash(text_, at_) : at_;
    if (end > at_) {
      replace_to(end);
    }
    return end > at_;
  }

  // Handles a name whose value follows without an operator. name: in [begin, at_).
  bool value_without_operator(std::string_view name, std::size_t begin) {
    const auto value = unassigned_value(text_, name, begin, at_);
    if (!value) {
      return false;
    }
    copy_to(value->begin);
    replace_to(value->end);
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
    if (is_key_of_known_form(name)) {
      replace_to(end);
    } else if (begin < end_of_command_ &&
               (name == std::string{'-', letter_} || (joined_ && name.starts_with("-p")))) {
      password_word(begin);
    } else {
      copy_to(end);
      if (const char letter = password_option(name, previous_); letter != 0) {
        letter_ = letter;
        joined_ = name == "sshpass";
        end_of_command_ = end + std::min(kNear, text_.substr(end, kNear).find('\n'));
      }
      if (name == "Bearer" || name == "bearer") {
        bearer();
      } else if (name == "-u" || name == "--user" || name == "--proxy-user") {
        user_and_password();
      } else if (!value_without_operator(name, begin)) {
        value_of(name, begin);
      }
    }
    previous_ = name;
    return true;
  }

  // Handles `sshpass -p secret`, `sshpass -psecret`, and the same as an array of words.
  void password_word(std::size_t begin) {
    std::size_t open = begin + 2;
    if (open == end_of_word(text_, begin)) {
      open = skip_blanks(text_, open + quote_at(text_, open).size());
      open += open < text_.size() && text_[open] == ',' ? 1 : 0;
      open = skip_blanks(text_, open);
    }
    const std::string_view quote = quote_at(text_, open);
    open += quote.size();
    const std::size_t end =
        quote.empty() ? first_of(text_, " \t\n\"'", open) : end_of_quote(text_, open, quote);
    copy_to(open);
    replace_to(end);
    end_of_command_ = 0;
  }

  void bearer() {
    const std::size_t begin = skip_blanks(text_, at_);
    const std::size_t end = first_of(text_, " \t\n\"',;\\", begin);
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
    const std::size_t end = first_of(text_, " \t\n\"'", open);
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
    // That of the entry: of the quote or the question mark before the name.
    const std::size_t key = begin - (quote_behind.empty() || begin == 0 ? 0 : 1);
    std::size_t at = at_ + quote_behind.size();
    const bool any_line = !quote_behind.empty() || is_explicit_key(text_, key);
    at = any_line ? skip_white(text_, at) : skip_blanks(text_, at);
    const char next = at < text_.size() ? text_[at] : '\n';
    const std::size_t operation = assignment_at(text_, at);
    const bool assigned = operation > 0 || (!quote_behind.empty() && is_pair(text_, at));
    const bool quoted_auth = name == "auth" && !quote_behind.empty() && next == ':';
    const bool in_table = assigned && begin < end_of_table_ && begins_line(text_, key);
    const bool tag = before == '<' && !assigned;
    if (!quoted_auth && !in_table && !is_secret_name(name) &&
        !(parameter && is_secret_parameter(name)) &&
        !((assigned || tag) && is_value_of_secret(text_, begin, at_))) {
      return;
    }
    if (tag) {
      element(name);
      return;
    }
    if (next == '>' && !quote_behind.empty() && key > 0 && text_[key - 1] == '=') {
      copy_to(at + 1);  // as in <entry key="password">
      element_text("");
      return;
    }
    const bool netrc = follows_netrc(text_, begin);
    const bool option = at > at_ && (name.starts_with("--") || previous_ == "setenv" || netrc ||
                                     (text_[at] == '"' && name.find("pass") != name.npos));
    if (!assigned && !option && !(netrc && next == '\n')) {
      return;
    }
    at = !assigned ? netrc ? skip_white(text_, at) : at
                   : skip_blanks(text_, at + std::max(operation, std::size_t{1}));
    if (const std::size_t below = skip_white(text_, at); below > at && begins_json(text_, below)) {
      at = next == ':' ? below : at;
    }
    replace_value(name, key, at, operation > 0 ? next : ' ', quote_behind);
  }

  // Replaces the value at `at` of the entry that begins at `key`. assignment: ' ' if there is none.
  void replace_value(std::string_view name, std::size_t key, std::size_t at, char assignment,
                     std::string_view quote_behind) {
    if (assignment == ':' && introduces_block(text_, at)) {
      const std::size_t end = end_of_block(text_, at, key, true);
      if (end > end_of_line(text_, at)) {
        copy_to(end_of_line(text_, at) < at ? at_ : at_ + quote_behind.size());
        copy_to(std::min(text_.find(':', at_), end) + 1);
        result_.text += ' ' + std::string(quote_behind);
        replace_to(end);
        result_.text += quote_behind;
        return;
      }
    }
    if (const std::size_t tag = end_of_tags(text_, at);
        assignment == ':' && tag > at && !quote_at(text_, tag).empty()) {
      at = tag;
    }
    const std::string_view quote = quote_at(text_, at);
    const std::size_t open = at + quote.size();
    const std::size_t end = end_of_value(text_, open, quote, name, assignment, key);
    const std::string_view value = text_.substr(open, end - open);
    if (end <= open || (quote.empty() ? is_harmless_value(name, value)
                                      : !value.empty() && name.ends_with("tokens") &&
                                            is_harmless_value(name, value))) {
      return;
    }
    // "password": 5 becomes a text, so that what reads JSON still reads the line.
    const std::string_view added =
        quote.empty() && assignment == ':' ? quote_behind : std::string_view();
    const std::string open_around = open_quotes(text_, key);
    const std::size_t last = quote.size() == 1 && end < text_.size() && text_[end] == quote[0]
                                 ? end_of_shell_word(text_, end + 1, open_around)
                                 : end;
    copy_to(open);
    result_.text += added;
    if (assignment == '=' && quote.empty()) {
      replace_to(std::max(end, end_of_shell_word(text_, end, open_around)));
    } else if (last > end + 1) {
      replace_to(last);
      result_.text += quote;
    } else {
      replace_to(end);
    }
    result_.text += added;
  }

  // Handles an element of XML that has a secret name: its attributes and its content.
  void element(std::string_view name) {
    const std::size_t close = first_of(text_.substr(0, at_ + kNear), "<>", at_);
    if (close >= text_.size() || text_[close] != '>') {
      return;
    }
    const bool empty = text_[close - 1] == '/';
    const std::size_t begin = skip_white(text_, at_);
    const std::size_t end = close - (empty ? 1 : 0);
    if (begin < end) {
      copy_to(begin);
      replace_to(end);
    }
    copy_to(close + 1);
    if (!empty) {
      element_text(name);
    }
  }

  // Replaces what is between the tags of an element. name: "" if the next end tag counts.
  void element_text(std::string_view name) {
    const std::string_view near = text_.substr(at_, kLongestElement);
    const std::size_t close = near.find("</" + std::string(name));
    const std::size_t end =
        close == std::string_view::npos ? first_of(text_, "<", at_) : at_ + close;
    if (end > at_) {
      replace_to(end);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t examined_ = 0;  // bytes that might have been JSON
  std::size_t left_to_examine_;
  std::string previous_;            // word
  bool joined_ = false;             // the password may follow the letter
  char letter_ = 0;                 // of the option that gives the current command a password
  std::size_t end_of_command_ = 0;  // of its line, if it still lacks that option
  std::size_t end_of_table_ = 0;
  Redacted result_;
};

}  // namespace

Redacted redact(std::string_view text) {
  Redacted columns = redact_columns(text);
  Redacted all = RedactionScan(columns.text).run();
  all.secrets += columns.secrets;
  return all;
}

}  // namespace trireme
