#include "src/study/redaction/table_fields.h"

#include <algorithm>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/program_text.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kFarthestEnd = 512;  // bytes in which a quoted field ends on another line

bool is_end_of_line(char c) { return c == '\n' || c == '\r'; }

}  // namespace

bool is_list_sign(char separator) { return separator == ',' || separator == ';'; }

std::string unquoted(std::string_view field) {
  if (field.size() > 1 && (field.front() == '"' || field.front() == '\'') &&
      field.front() == field.back()) {
    field = field.substr(1, field.size() - 2);
  }
  return std::string(field);
}

std::string column_name(std::string_view field) {
  std::string name = unquoted(field);
  name.erase(0, name.rfind('/') + 1);  // npos + 1 is 0
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::string_view(" ()[]%#").find(c) != std::string_view::npos; }, '_');
  return name;
}

std::string header_name(std::string_view field) {
  if (const std::size_t colon = field.find(':'); colon < field.size() && is_typed(field, colon)) {
    field = field.substr(0, colon);
  }
  std::string name = column_name(field);
  if (field.starts_with('"')) {
    std::replace_if(
        name.begin(), name.end(),
        [](char c) {
          return std::string_view("\",;:|\t\r\n'&+=*?!").find(c) != std::string_view::npos;
        },
        '_');
  }
  return name;
}

bool is_column_word(const std::string& name) { return end_of_word(name, 0) == name.size(); }

TableField table_line(std::string_view text, std::size_t at) {
  return {at, std::min(text.find_first_of("\r\n", at), text.size())};
}

std::size_t behind_line(std::string_view text, std::size_t end) {
  end += text.substr(end).starts_with("\r\n") ? 1 : 0;
  return std::min(end + 1, text.size());
}

bool is_ruler(std::string_view line) {
  return line.find('-') != std::string_view::npos &&
         line.find_first_not_of("-+|=: \t") == std::string_view::npos;
}

std::size_t end_of_field(std::string_view text, std::size_t at, char separator) {
  const bool in_quotes = at < text.size() && text[at] == '"';
  bool quoted = in_quotes;
  at += quoted ? 1 : 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '"' && in_quotes) {
      quoted = !quoted;
    } else if (!quoted && (text[at] == separator || is_end_of_line(text[at]))) {
      break;
    }
  }
  return at;
}

std::size_t behind_quoted_field(std::string_view text, const TableField& line) {
  const std::string_view near = text.substr(0, line.end + kFarthestEnd);
  std::size_t at = near.find_first_not_of(' ', line.begin);
  if (at >= line.end || near[at] != '"') {
    return line.begin;
  }
  do {
    at = near.find('"', at + 1);
    at += at < near.size() ? 1 : 0;
  } while (at < near.size() && near[at] == '"');
  return at < near.size() ? near.find_first_not_of(' ', at) : line.begin;
}

std::vector<TableField> aligned_fields(std::string_view text, TableField line, std::size_t blanks,
                                       std::size_t most) {
  std::vector<TableField> fields;
  std::size_t at = line.begin;
  while (true) {
    while (at < line.end && is_blank(text[at])) {
      ++at;
    }
    if (at == line.end || fields.size() > most) {
      return fields;
    }
    const std::size_t begin = at;
    std::size_t end = at;
    for (; at < line.end; ++at) {
      end = is_blank(text[at]) ? end : at + 1;
      if (text[at] == '\t' || at + 1 - end >= blanks) {
        break;
      }
    }
    fields.push_back({begin, end});
  }
}

std::vector<TableField> separated_fields(std::string_view text, TableField& line, char separator,
                                         std::size_t most) {
  std::vector<TableField> fields;
  std::size_t at = line.begin;
  while (true) {
    std::size_t begin = at;
    while (begin < line.end && text[begin] == ' ') {
      ++begin;
    }
    const std::string_view near = text.substr(0, line.end + kFarthestEnd);
    std::size_t end = end_of_field(near, begin, separator);
    if (end > line.end && end == near.size() && near.size() < text.size()) {
      end = std::min(near.find(separator, begin), line.end);  // its quote ends nowhere
    }
    line.end = end > line.end ? std::min(text.find_first_of("\r\n", end), text.size()) : line.end;
    const std::size_t next = end;
    while (end > begin && text[end - 1] == ' ') {
      --end;
    }
    fields.push_back({begin, end});
    if (next >= line.end || text[next] != separator || fields.size() > most) {
      return fields;
    }
    at = next + 1;
  }
}

}  // namespace trireme
