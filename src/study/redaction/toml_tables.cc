#include "src/study/redaction/toml_tables.h"

#include <algorithm>
#include <string>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

std::size_t skip_toml_blanks(std::string_view line, std::size_t at) {
  return std::min(line.find_first_not_of(" \t\r", at), line.size());
}

// Returns the place behind the quote that closes the key at `at`, or `at`.
std::size_t end_of_quoted_key(std::string_view line, std::size_t at) {
  const bool quoted = at < line.size() && (line[at] == '"' || line[at] == '\'');
  std::size_t end = at + 1;
  while (quoted && end < line.size() && line[end] != line[at]) {
    end += line[end] == '\\' && line[at] == '"' ? 2 : 1;
  }
  return quoted && end < line.size() ? end + 1 : at;
}

// Returns the name of the table of which a line is the header, with points between its keys, or "".
std::string name_of_table(std::string_view line) {
  std::size_t at = skip_toml_blanks(line, 0);
  const std::size_t brackets = line.substr(at).starts_with("[[") ? 2 : 1;
  if (at == line.size() || line[at] != '[') {
    return "";
  }
  std::string name;
  for (at = skip_toml_blanks(line, at + brackets); at < line.size() && line[at] != ']';
       at = skip_toml_blanks(line, at)) {
    const std::size_t quoted = end_of_quoted_key(line, at);
    const std::size_t end = quoted > at ? quoted : end_of_word(line, at);
    const bool point = line[at] == '.' || name.empty() || name.ends_with('.');
    if (end == at || !point) {
      return "";
    }
    name += quoted > at ? line.substr(at + 1, end - at - 2) : line.substr(at, end - at);
    at = end;
  }
  const std::string_view rest = line.substr(std::min(at, line.size()));
  const std::size_t behind = skip_toml_blanks(rest, brackets);
  const bool closed = rest.starts_with(brackets == 2 ? "]]" : "]");
  return closed && (behind == rest.size() || rest[behind] == '#') ? name : "";
}

// Returns whether the line at `at` goes on with an array of lines before it.
bool is_in_array(std::string_view text, std::size_t at) {
  const std::size_t last = at == 0 ? text.npos : text.find_last_not_of(" \t\r\n", at - 1);
  return last != text.npos && (text[last] == ',' || text[last] == '[');
}

}  // namespace

std::optional<std::size_t> end_of_secret_table(std::string_view text, std::size_t at) {
  std::string name = name_of_table(text.substr(at, end_of_line(text, at) - at));
  std::replace(name.begin(), name.end(), ' ', '_');
  if (!is_secret_name(name) || (is_blank(text[at]) && is_in_array(text, at))) {
    return std::nullopt;
  }
  for (at = end_of_line(text, at); at < text.size(); at = end_of_line(text, at)) {
    ++at;
    const bool indented = at < text.size() && is_blank(text[at]);
    const std::string_view line = text.substr(at, end_of_line(text, at) - at);
    if (line.starts_with('[') ||
        (indented && !name_of_table(line).empty() && !is_in_array(text, at))) {
      return at;
    }
  }
  return text.size();
}

std::optional<std::size_t> value_of_quoted_key(std::string_view text, std::size_t at) {
  const std::string_view line = text.substr(0, end_of_line(text, at));
  const std::size_t key = skip_toml_blanks(line, at);
  const std::size_t end = end_of_quoted_key(line, key);
  const std::size_t equals = skip_toml_blanks(line, end);
  const bool entry = end > key && equals < line.size() && line[equals] == '=';
  return entry ? std::optional(skip_toml_blanks(line, equals + 1)) : std::nullopt;
}

}  // namespace trireme
