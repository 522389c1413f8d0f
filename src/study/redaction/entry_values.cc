#include "src/study/redaction/entry_values.h"

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/plain_values.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

bool is_within(TextRange inner, TextRange outer) {
  return inner.begin >= outer.begin && inner.end <= outer.end;
}

// Returns whether the name at `key` is that of a parameter of a URL or a form. In the string of a
// connection to a database, too, semicolons stand before names.
bool is_parameter(std::string_view text, std::size_t key) {
  const char before = key > 0 ? text[key - 1] : '\n';
  if (before != ';') {
    return before == '?' || before == '&';
  }
  const std::string_view line = line_before(text, key);
  const std::size_t begin = line.find_last_of(" \t\"'") + 1;  // npos + 1 is 0
  return line.find_first_of("?&", begin) != std::string_view::npos;
}

}  // namespace

bool is_behind_user(std::string_view text, std::size_t key) {
  return key > 0 && text[key - 1] == ';' &&
         line_before(text, key).find("UID=") != std::string_view::npos;
}

bool EntryValues::is_bracket(std::size_t at) const {
  return at < text_.size() && (text_[at] == '[' || text_[at] == '{');
}

const BracketPairs& EntryValues::brackets() {
  if (!brackets_) {
    brackets_.emplace(text_);
  }
  return *brackets_;
}

std::optional<std::size_t> EntryValues::end_in_flow(std::size_t key, std::size_t begin) {
  return begins_line(text_, key) ? brackets().end_of_flow_value(key, begin) : std::nullopt;
}

std::size_t EntryValues::end(std::string_view name, std::size_t key, std::size_t begin,
                             std::string_view quote, char assignment) {
  if (quote.empty() && is_bracket(begin)) {
    return brackets().end(begin);
  }
  const auto in_flow = quote.empty() && assignment == ':' ? end_in_flow(key, begin) : std::nullopt;
  const auto end = in_flow ? in_flow : end_of_value(text_, begin, quote, name, assignment, key);
  return end ? *end : end_of_plain(key, begin, assignment == ':');
}

// A value within another one of the same kind has the same end.
std::size_t EntryValues::end_of_plain(std::size_t key, std::size_t begin, bool with_blanks) {
  const bool parameter = is_parameter(text_, key);
  TextRange& latest = plain_[(with_blanks ? 1 : 0) + (parameter ? 2 : 0)];
  if (begin < latest.begin || begin >= latest.end) {
    latest = {begin, end_of_plain_value(text_, begin, with_blanks, parameter)};
  }
  return latest.end;
}

std::size_t EntryValues::end_below(std::size_t key, std::size_t begin) {
  if (const auto in_flow = end_in_flow(key, begin)) {
    return *in_flow;
  }
  const std::size_t line = text_.substr(0, key).rfind('\n') + 1;  // npos + 1 is 0
  if (!is_comment(line)) {
    return end_of_block(text_, begin, key, true);
  }
  // All keys in the same comments have the same lines below them.
  const std::size_t line_end = end_of_line(text_, begin);
  const std::size_t before = end_of_comments(line_end);
  const std::size_t end = end_of_block(text_, before, key, true);
  return end > before ? end : line_end;
}

bool EntryValues::is_comment(std::size_t line) const {
  const std::size_t first = text_.find_first_not_of(" \t\r", line);
  return first != text_.npos && text_[first] == '#';
}

std::size_t EntryValues::end_of_comments(std::size_t line_end) {
  if (line_end < comments_.begin || line_end >= comments_.end) {
    comments_ = {line_end, line_end};
    while (comments_.end < text_.size() && is_comment(comments_.end + 1)) {
      comments_.end = end_of_line(text_, comments_.end + 1);
    }
  }
  return comments_.end;
}

// A value in brackets within another one that tells nothing tells nothing either, if the names of
// both count, and so would not be looked through again for each bracket.
bool EntryValues::is_harmless(std::string_view name, TextRange value) {
  const auto own = [&] {
    return is_harmless_value(name, text_.substr(value.begin, value.end - value.begin));
  };
  if (!is_bracket(value.begin) || !counts_something(name)) {
    return own();
  }
  TextRange& latest = harmless_[is_harmless_value(name, "forward") ? 1 : 0];
  if (is_within(value, harmless_[0]) || is_within(value, latest)) {
    return true;
  }
  const bool harmless = own();
  latest = harmless ? value : latest;
  return harmless;
}

}  // namespace trireme
