#include "src/study/anonymity/name_words.h"

#include <algorithm>
#include <cctype>

namespace trireme {
namespace {

bool is_white(char c) { return c == ' ' || c == '\t' || c == '\n'; }
bool is_part(char c) { return is_name(c) || c == '.'; }

}  // namespace

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return is_letter(c) || c == '_' || c == '-'; }

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return result;
}

bool NameWords::next() {
  before_[2] = before_[1];
  before_[1] = before_[0];
  before_[0] = word();
  begin_ = end_;
  while (begin_ < text_.size() && !is_part(text_[begin_])) {
    ++begin_;
  }
  end_ = begin_;
  while (end_ < text_.size() && is_part(text_[end_])) {
    ++end_;
  }
  return begin_ < text_.size();
}

std::vector<std::string> NameWords::values() const {
  std::size_t at = end_;
  while (at < text_.size() && (text_[at] == '\\' || text_[at] == '"' || text_[at] == '\'')) {
    ++at;
  }
  const bool quoted = at > end_;
  at = text_.find_first_not_of(" \t", at);
  if (at == std::string_view::npos || (text_[at] != ':' && text_[at] != '=')) {
    return {};
  }
  // "host: unknown error" in a log is no assignment.
  const bool sure = quoted || text_[at] == '=';
  const char before = before_entry();
  at = text_.find_first_not_of(" \t", at + 1);
  std::vector<std::string> found;
  if (at == std::string_view::npos) {
    return found;
  }
  if (text_[at] == '&') {  // an anchor of YAML
    at = std::min(text_.find_first_of(" \n", at), text_.size());
    at = std::min(text_.find_first_not_of(' ', at), text_.size());
  }
  const bool list = at < text_.size() && text_[at] == '[';
  for (at += list ? 1 : 0; at < text_.size();) {
    at = std::min(text_.find_first_not_of(list ? " \t\n,\\" : "\\", at), text_.size());
    if (at < text_.size() && text_[at] != ']') {
      found.push_back(value(at, list));
    }
    if (!list || at >= text_.size() || text_[at] == ']' || found.back().empty()) {
      break;
    }
  }
  // A comma behind a value was taken for that of a list of hosts.
  const bool in_braces = before == '{' || before == ',';
  const bool ends = ends_entry(at) || (in_braces && at > 0 && text_[at - 1] == ',');
  const bool good = sure || list || (before != '\0' && ends);
  return good ? found : std::vector<std::string>();
}

bool NameWords::follows(std::string_view what) const {
  return text_.substr(0, begin_).ends_with(what);
}

std::string_view NameWords::line_before() const {
  constexpr std::size_t kNear = 512;
  const std::size_t least = begin_ > kNear ? begin_ - kNear : 0;
  const std::string_view near = text_.substr(least, begin_ - least);
  return near.substr(near.rfind('\n') + 1);
}

std::string NameWords::own_list() const {
  std::size_t at = begin_;
  return value(at, false);
}

std::string NameWords::option_value() const {
  std::size_t at = std::min(text_.find_first_not_of(" =", end_), text_.size());
  return value(at, false);
}

char NameWords::before_entry() const {
  std::size_t at = begin_;
  while (at > 0 && (text_[at - 1] == ' ' || text_[at - 1] == '\t' || text_[at - 1] == '-')) {
    --at;
  }
  const char before = at == 0 ? '\n' : text_[at - 1];
  return std::string_view("\n{,").find(before) != std::string_view::npos ? before : '\0';
}

bool NameWords::ends_entry(std::size_t at) const {
  at = text_.find_first_not_of(" \t\r", at);
  return at == std::string_view::npos ||
         std::string_view("\n,}#").find(text_[at]) != std::string_view::npos;
}

std::string NameWords::value(std::size_t& at, bool in_list) const {
  if (at < text_.size() && (text_[at] == '"' || text_[at] == '\'')) {
    const std::size_t close = text_.find_first_of("\"'\n", at + 1);
    const std::size_t end = std::min(close, text_.size());
    std::string result(text_.substr(at + 1, end - at - 1));
    at = std::min(end + 1, text_.size());
    result.erase(std::min(result.find_last_not_of('\\') + 1, result.size()));
    return result;
  }
  std::size_t end = at;
  int depth = 0;
  while (end < text_.size() && !is_white(text_[end]) &&
         (is_part(text_[end]) || text_[end] == '[' || (text_[end] == ']' && depth > 0) ||
          text_[end] == ':' || (text_[end] == ',' && (!in_list || depth > 0)))) {
    depth += text_[end] == '[' ? 1 : text_[end] == ']' ? -1 : 0;
    ++end;
  }
  std::string result(text_.substr(at, end - at));
  at = end;
  // In cpu=4,node=3,billing=192, the last word is another key.
  if (end < text_.size() && text_[end] == '=') {
    result.erase(std::min(result.rfind(','), result.size()));
  }
  result.erase(std::min(result.find_last_not_of(",:") + 1, result.size()));
  return result;
}

}  // namespace trireme
