#include "src/study/redaction/bracket_pairs.h"

#include <algorithm>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kMostBlanksBefore = 256;  // between a key and its bracket

bool is_opening(char c) { return c == '[' || c == '{'; }
bool is_white(char c) { return is_blank(c) || c == '\n' || c == '\r'; }

// Returns whether the bracket at `open` stands where a value of YAML does, rather than in a word or
// a sentence.
bool begins_flow(std::string_view text, std::size_t open) {
  const std::size_t least = open > kMostBlanksBefore ? open - kMostBlanksBefore : 0;
  std::size_t at = open;
  while (at > least && is_blank(text[at - 1])) {
    --at;
  }
  return at == 0 || std::string_view("\n:[{,").find(text[at - 1]) != std::string_view::npos ||
         (at < open && text[at - 1] == '-');
}

// Returns whether an entry such as `key: ` or `"key": ` begins at `at`.
bool begins_flow_entry(std::string_view text, std::size_t at) {
  const std::size_t begin = at + quote_at(text, at).size();
  const std::size_t end = end_of_word(text, begin);
  const std::size_t behind = end + quote_at(text, end).size();
  const std::size_t sign = skip_blanks(text, behind);
  return end > begin && sign < text.size() && text[sign] == ':' &&
         (behind > end || sign + 1 == text.size() || is_white(text[sign + 1]));
}

// Returns whether the comma at `at` is followed by the end of the line, a comment, an entry, or the
// bracket at `close`.
bool separates_entries(std::string_view text, std::size_t at, std::size_t close) {
  const std::size_t next = skip_blanks(text, at + 1);
  return next >= close || is_white(text[next]) || text[next] == '#' ||
         begins_flow_entry(text, next);
}

}  // namespace

BracketPairs::BracketPairs(std::string_view text) : text_(text) {
  std::vector<std::size_t> open;  // indices of marks_
  for (std::size_t at = text.find_first_of("[]{}"); at != text.npos;
       at = text.find_first_of("[]{}", at + 1)) {
    if (is_opening(text[at])) {
      open.push_back(marks_.size());
      marks_.push_back({at, text.npos, at});
    } else if (!open.empty()) {
      marks_[open.back()].close = at;
      open.pop_back();
      marks_.push_back({at, text.npos, open.empty() ? text.npos : marks_[open.back()].at});
    }
  }
}

// Returns the last mark at `at` or before it, or null.
const BracketPairs::Mark* BracketPairs::mark_before(std::size_t at) const {
  const auto behind =
      std::upper_bound(marks_.begin(), marks_.end(), at,
                       [](std::size_t place, const Mark& mark) { return place < mark.at; });
  return behind == marks_.begin() ? nullptr : &*(behind - 1);
}

std::size_t BracketPairs::end(std::size_t begin) const {
  const Mark* const mark = mark_before(begin);
  return mark == nullptr || mark->at != begin || mark->close == text_.npos
             ? end_of_line(text_, begin)
             : mark->close + 1;
}

// Returns the place of the bracket that closes the list or mapping around the key.
std::optional<std::size_t> BracketPairs::close_of_flow(std::size_t key) const {
  const Mark* const last = mark_before(key);
  const std::size_t open = last == nullptr ? text_.npos : last->around;
  if (open == text_.npos || !begins_flow(text_, open)) {
    return std::nullopt;
  }
  const std::size_t close = mark_before(open)->close;
  const bool pair = close != text_.npos && text_[close] == (text_[open] == '[' ? ']' : '}');
  return pair ? std::optional(close) : std::nullopt;
}

std::optional<std::size_t> BracketPairs::end_of_flow_value(std::size_t key,
                                                           std::size_t begin) const {
  const auto close = close_of_flow(key);
  if (!close) {
    return std::nullopt;
  }
  std::size_t at = begin;
  for (bool found = false; at < *close;) {
    const char c = text_[at];
    if ((c == ',' && separates_entries(text_, at, *close)) ||
        (c == '\n' && found && begins_flow_entry(text_, skip_blanks(text_, at + 1)))) {
      break;
    }
    const bool comment = c == '#' && (at == begin || is_white(text_[at - 1]));
    const bool quoted = !found && (c == '"' || c == '\'');
    const std::size_t tags = found ? at : end_of_tags(text_, at);
    found = found || (!comment && !is_white(c) && tags == at);
    at = comment         ? end_of_line(text_, at)
         : tags > at     ? tags
         : quoted        ? end_of_quote(text_, at + 1, text_.substr(at, 1)) + 1
         : is_opening(c) ? end(at)
                         : at + 1;
  }
  at = std::min(at, *close);
  while (at > begin && is_white(text_[at - 1])) {
    --at;
  }
  return at;
}

}  // namespace trireme
