#include "src/study/table_redaction.h"

#include <algorithm>
#include <vector>

#include "src/study/assigned_text.h"
#include "src/study/secret_names.h"

namespace trireme {
namespace {

std::string unquoted(std::string_view field) {
  if (field.size() > 1 && field.front() == '"' && field.back() == '"') {
    field = field.substr(1, field.size() - 2);
  }
  return std::string(field);
}

// Returns the end of the field at `at`. Quoted ones may have any character in them.
std::size_t end_of_field(std::string_view text, std::size_t at, char separator) {
  bool quoted = at < text.size() && text[at] == '"';
  at += quoted ? 1 : 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[at] == separator || text[at] == '\n' || text[at] == '\r')) {
      break;
    }
  }
  return at;
}

// Returns the names of the columns if all fields of the line are words, otherwise none.
std::vector<std::string> columns_of(std::string_view line, char separator) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    const std::size_t end = end_of_field(line, at, separator);
    std::string name = unquoted(line.substr(at, end - at));
    std::replace_if(
        name.begin(), name.end(),
        [](char c) { return std::string_view(" /()[]%#").find(c) != std::string_view::npos; }, '_');
    if (end_of_word(name, 0) != name.size()) {
      return {};
    }
    names.push_back(std::move(name));
    at = end;
  }
  return names;
}

}  // namespace

Redacted redact_columns(std::string_view text) {
  const std::size_t begin = text.starts_with("\ufeff") ? 3 : 0;
  const std::size_t header = std::min(text.find_first_of("\r\n", begin), text.size());
  const std::string_view line = text.substr(begin, header - begin);
  const std::size_t first = line.find_first_of(",;\t");
  const char separator = first == std::string_view::npos ? ',' : line[first];
  const std::vector<std::string> names = columns_of(line, separator);
  if (names.size() < 2 || std::none_of(names.begin(), names.end(), is_secret_name)) {
    return {std::string(text), 0};
  }
  Redacted result = {std::string(text.substr(0, header)), 0};
  std::size_t column = names.size();
  for (std::size_t at = header; at < text.size();) {
    if (const char c = text[at]; c == '\r' || c == '\n' || c == separator) {
      column = c == separator ? column + 1 : 0;
      result.text += c;
      ++at;
      continue;
    }
    const std::size_t end = end_of_field(text, at, separator);
    const std::string value = unquoted(text.substr(at, end - at));
    if (column < names.size() && is_secret_name(names[column]) && value != kRedacted &&
        !is_harmless_value(names[column], value)) {
      result.text += kRedacted;
      ++result.secrets;
    } else {
      result.text += text.substr(at, end - at);
    }
    at = end;
  }
  return result;
}

}  // namespace trireme
