#include "src/study/redaction/redaction.h"

#include <algorithm>
#include <optional>

#include "src/study/redaction/anchor_redaction.h"
#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/colour_codes.h"
#include "src/study/redaction/command_secrets.h"
#include "src/study/redaction/entry_values.h"
#include "src/study/redaction/json_redaction.h"
#include "src/study/redaction/plain_values.h"
#include "src/study/redaction/program_text.h"
#include "src/study/redaction/scalar_redaction.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/secret_text.h"
#include "src/study/redaction/subscript_text.h"
#include "src/study/redaction/table_numbers.h"
#include "src/study/redaction/table_redaction.h"
#include "src/study/redaction/toml_tables.h"
#include "src/study/redaction/url_text.h"
#include "src/study/redaction/value_text.h"
#include "src/study/redaction/xml_redaction.h"

namespace trireme {
namespace {

// Scans a text from its start to its end, and copies it without the secrets.
class RedactionScan {
 public:
  explicit RedactionScan(std::string_view text)
      : text_(text),
        elements_(text),
        commands_(text),
        values_(text),
        left_to_examine_(4 * text.size() + 4096) {}

  Redacted run() {
    while (at_ < text_.size()) {
      enter_table();
      if (!scalar() && !json() && !xml() && !private_key() && !token_uri() && !url() &&
          !crypt_hash() && !word()) {
        result_.text += text_[at_++];
      }
    }
    return std::move(result_);
  }

 private:
  void copy_to(std::size_t end) {
    result_.text += text_.substr(at_, end - at_);
    at_ = end;
  }

  // Replaces the text up to `end`, but not the first half of a line end.
  void replace_to(std::size_t end) {
    while (end > at_ + 1 && text_[end - 1] == '\r') {
      --end;
    }
    if (text_.substr(at_, end - at_) != kRedacted) {
      ++result_.secrets;
    }
    result_.text += kRedacted;
    at_ = end;
  }

  // Handles a line of YAML that is a scalar in quotes or a word of a command, or a row of a table.
  bool scalar() {
    if ((at_ > 0 && text_[at_ - 1] != '\n') || at_ < end_of_table_) {
      return false;
    }
    auto line = items_.next(text_, at_);
    line = line ? std::move(line) : redact_quoted_line(text_, at_);
    line = line ? std::move(line) : numbers_.next(text_, at_);
    if (line) {
      result_.text += line->redacted.text;
      result_.secrets += line->redacted.secrets;
      at_ = line->end;
    }
    return line.has_value();
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
    if (!end || (c == '"' && !whole) || is_subscript(text_, at_, *end)) {
      return false;
    }
    result_.secrets += redact_json(text_.substr(at_, *end - at_), result_.text);
    at_ = *end;
    return true;
  }

  // Handles an element, a tag or a comment of XML.
  bool xml() {
    if (text_[at_] != '<') {
      return false;
    }
    const std::size_t end =
        redact_xml(text_, elements_, at_, announced_, result_.text, result_.secrets);
    const bool found = end > at_;
    at_ = end;
    return found;
  }

  // Notes that a table of TOML such as [db.secrets] begins here, all values of which are secrets,
  // and replaces the value behind a key of it that is in quotes.
  void enter_table() {
    if (at_ > 0 && text_[at_ - 1] != '\n') {
      return;
    }
    if (const auto end = end_of_secret_table(text_, at_)) {
      end_of_table_ = *end;
    }
    const auto value = at_ < end_of_table_ ? value_of_quoted_key(text_, at_) : std::nullopt;
    if (!value) {
      return;
    }
    const std::size_t key = skip_blanks(text_, at_);
    const std::string_view quote = quote_at(text_, *value);
    // The scan goes on behind the value, which must not be the end of the text.
    if (values_.end("secret", key, *value + quote.size(), quote, '=') < text_.size()) {
      replace_value("secret", key, *value, '=', "");
    }
  }

  bool private_key() {
    const std::size_t end = end_of_private_key(text_, at_);
    const bool found = end > at_;
    if (found) {
      replace_to(end);
    }
    return found;
  }

  // Handles the attributes of a PKCS#11 URI.
  bool token_uri() {
    const auto uri = token_uri_at(text_, at_);
    if (uri) {
      for (const TextRange& secret : uri->secrets) {
        copy_to(secret.begin);
        replace_to(secret.end);
      }
      copy_to(uri->end);
    }
    return uri.has_value();
  }

  // Handles the user and password of a URL, and the path of a webhook.
  bool url() {
    auto range = login_in_url(text_, at_);
    range = range ? range : secret_path(text_, at_);
    if (range) {
      copy_to(range->begin);
      if (range->end > range->begin) {
        replace_to(range->end);
      }
    }
    return range.has_value();
  }

  bool crypt_hash() {
    const std::size_t end = text_[at_] == '$' ? end_of_crypt_hash(text_, at_) : at_;
    const bool found = end > at_;
    if (found) {
      replace_to(end);
    }
    return found;
  }

  // Handles a name whose values follow without an operator. name: in [begin, at_).
  bool values_without_operator(std::string_view name, std::size_t begin) {
    const auto values = unassigned_values(text_, name, begin, at_);
    for (const TextRange& value : values) {
      copy_to(value.begin);
      replace_to(value.end);
    }
    return !values.empty();
  }

  // Handles a name in an expression with subscripts, as in cfg["password"] = "x".
  bool subscript(std::string_view name, std::size_t begin) {
    const auto whole = is_secret_name(name) ? subscripted_at(text_, begin, at_) : std::nullopt;
    if (!whole) {
      return false;
    }
    const std::size_t bytes = assignment_at(text_, whole->operation);
    const std::size_t value = skip_blanks(text_, whole->operation + bytes);
    copy_to(whole->operation + bytes);
    replace_value(name, whole->begin, value, text_[whole->operation + bytes - 1] == ':' ? ':' : '=',
                  "");
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
    word_ = begin;
    if (is_key_of_known_form(name)) {
      replace_to(end);
      return true;
    }
    if (const auto secret = commands_.next(name, begin, end)) {
      copy_to(secret->begin);
      replace_to(secret->end);
      return true;
    }
    copy_to(end);
    const bool announced = announces_key(name) && announced_key();
    if (!announced && !values_without_operator(name, begin) && !subscript(name, begin)) {
      const auto phrase = name.starts_with("--") ? std::nullopt : secret_phrase(text_, begin, end);
      // The dashes of a list before a name are no part of it.
      const std::size_t first = phrase ? phrase->begin : begin;
      value_of(phrase ? phrase->name : name,
               std::min(text_.substr(0, begin).find_first_not_of("- \t", first), begin));
    }
    return true;
  }

  bool announced_key() {
    const std::size_t begin = skip_blanks(text_, at_);
    const std::size_t end = end_of_plain_value(text_, begin, false);
    const bool found = begin > at_ && end >= begin + 8;
    if (found) {
      copy_to(begin);
      replace_to(end);
    }
    return found;
  }

  // Replaces the value behind a secret name, if there is one. begin: of the name.
  void value_of(std::string_view name, std::size_t begin) {
    const char before = begin == 0 ? '\n' : text_[begin - 1];
    const bool parameter = before == '?' || before == '&';
    const std::string_view quote_behind = quote_at(text_, at_);
    // That of the entry: of the quote or the question mark before the name.
    const std::size_t key = begin - (quote_behind.empty() || begin == 0 ? 0 : 1);
    const std::string_view bold = "**";  // of Markdown
    const bool in_bold =
        text_.substr(at_).starts_with(bold) && text_.substr(0, begin).ends_with(bold);
    std::size_t at = at_ + (in_bold ? bold.size() : quote_behind.size());
    const bool any_line = !quote_behind.empty() || is_explicit_key(text_, key);
    const std::size_t blanks = skip_blanks(text_, at);
    at = any_line ? skip_white(text_, at) : blanks;
    const bool on_line = at == blanks;
    const char next = at < text_.size() ? text_[at] : '\n';
    const std::size_t operation = assignment_at(text_, at);
    const bool assigned = operation > 0 || (!quote_behind.empty() && is_pair(text_, at));
    const bool quoted_auth = name == "auth" && !quote_behind.empty() && next == ':';
    const bool in_table = assigned && begin < end_of_table_ && begins_line(text_, key);
    if (!quoted_auth && !in_table && !is_secret_name(name) &&
        !(parameter && is_secret_parameter(name)) &&
        !(name == "PWD" && is_behind_user(text_, begin)) &&
        !(assigned && is_value_of_secret(text_, begin, at_))) {
      return;
    }
    if (operation > 0 && (is_statement(text_, word_, at) || is_typed(text_, at))) {
      return;
    }
    const bool netrc = !name.starts_with('-') && follows_netrc(text_, begin);
    const bool option = at > at_ && next != '-' &&
                        (is_secret_option(name) || takes_pair(commands_.previous()) || netrc ||
                         (next == '"' && on_line && is_password_name(name)));
    if (!assigned && !option && !(netrc && next == '\n')) {
      return;
    }
    at = !assigned ? netrc ? skip_white(text_, at) : at
                   : skip_blanks(text_, at + std::max(operation, std::size_t{1}));
    if (const std::size_t below = skip_white(text_, at);
        below > at && begins_json(text_, below) && !is_quoted_key(text_, below)) {
      at = next == ':' ? below : at;
    }
    quoted_entry_ =
        operation > 0 && next == '=' && quote_behind.empty() && quote_at(text_, at).empty()
            ? end_of_quoted_entry(text_, word_, at)
            : std::nullopt;
    replace_value(name, key, at, operation > 0 ? next : ' ', quote_behind);
    quoted_entry_.reset();
  }

  // Replaces the value at `at` of the entry that begins at `key`. assignment: ' ' if there is none.
  void replace_value(std::string_view name, std::size_t key, std::size_t at, char assignment,
                     std::string_view quote_behind) {
    if (assignment == ':' && introduces_block(text_, at)) {
      const std::size_t end = values_.end_below(key, at);
      if (end > end_of_line(text_, at) && values_.is_harmless(name, {at, end})) {
        return;
      }
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
        assignment == ':' && tag > at &&
        (!quote_at(text_, tag).empty() || text_.substr(tag).starts_with(kRedacted))) {
      at = tag;
    }
    if (text_.substr(at).starts_with("ConvertTo-SecureString ")) {
      return;  // CommandSecrets finds it
    }
    const std::string_view quote = quote_at(text_, at);
    const std::size_t open = at + quote.size();
    const std::size_t end = quoted_entry_.value_or(values_.end(name, key, open, quote, assignment));
    if (end <= open || values_.is_harmless(name, {open, end})) {
      return;
    }
    // "password": 5 becomes a text, so that what reads JSON still reads the line.
    const std::string_view added =
        quote.empty() && assignment == ':' ? quote_behind : std::string_view();
    const std::string open_around = open_quotes(text_, key);
    const bool closed = quote.size() == 1 && end < text_.size() && text_[end] == quote[0];
    const std::size_t last = !closed
                                 ? end
                                 : std::max(end_of_shell_word(text_, end + 1, open_around),
                                            assignment == '='   ? end_of_tuple(text_, key, end + 1)
                                            : assignment == ':' ? end_of_texts(text_, end + 1)
                                                                : 0);
    copy_to(open);
    result_.text += added;
    if (assignment != ':' && quote.empty() && !quoted_entry_) {
      replace_to(std::max(end, end_of_shell_word(text_, end, open_around)));
    } else if (last > end + 1) {
      replace_to(last);
      result_.text += quote;
    } else {
      replace_to(end);
    }
    result_.text += added;
  }

  std::string_view text_;
  XmlElements elements_;
  std::string announced_;  // the name that an element of XML has given the next one
  CommandSecrets commands_;
  CommandItems items_;
  TableNumbers numbers_;
  EntryValues values_;
  std::size_t at_ = 0;
  std::size_t word_ = 0;                     // where the last word begins
  std::optional<std::size_t> quoted_entry_;  // its end, if quotes are around a name and its value
  std::size_t examined_ = 0;                 // bytes that might have been JSON
  std::size_t left_to_examine_;
  std::size_t end_of_table_ = 0;
  Redacted result_;
};

}  // namespace

Redacted redact(std::string_view text) {
  const Redacted anchors = redact_anchors(without_colours(text));
  const Redacted columns = redact_columns(anchors.text);
  Redacted all = RedactionScan(columns.text).run();
  all.secrets += anchors.secrets + columns.secrets;
  return all;
}

Redacted redact_value(std::string_view name, std::string_view value) {
  const bool secret = is_secret_name(name) && !value.empty() && value != kRedacted &&
                      !is_harmless_value(name, value);
  return secret ? Redacted{std::string(kRedacted), 1} : redact(value);
}

std::string redact_path(std::string_view path) {
  std::string result;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    const auto suffix = std::find_if(kTextSuffixes.begin(), kTextSuffixes.end(),
                                     [&](std::string_view each) { return part.ends_with(each); });
    const std::size_t bytes = suffix == kTextSuffixes.end() ? 0 : suffix->size();
    result += redact(part.substr(0, part.size() - bytes)).text;
    result += path.substr(slash - bytes, bytes + (slash < path.size() ? 1 : 0));
    at = slash + 1;
  }
  return result;
}

}  // namespace trireme
