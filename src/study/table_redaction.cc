#include "src/study/table_redaction.h"

#include <algorithm>
#include <vector>

#include "src/study/assigned_text.h"
#include "src/study/json_redaction.h"
#include "src/study/secret_names.h"
#include "src/study/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestHeader = 4096;  // bytes of a header below the first line
constexpr std::size_t kFarthestEnd = 512;     // bytes in which a quoted field ends there
constexpr char kAligned = ' ';                // separator of columns with two blanks between them

struct TableField {
  std::size_t begin = 0, end = 0;
};

std::string unquoted(std::string_view field) {
  if (field.size() > 1 && field.front() == '"' && field.back() == '"') {
    field = field.substr(1, field.size() - 2);
  }
  return std::string(field);
}

bool is_end_of_line(char c) { return c == '\n' || c == '\r'; }

// Returns the end of the field at `at`. Quoted ones may have any character in them.
std::size_t end_of_field(std::string_view text, std::size_t at, char separator) {
  bool quoted = at < text.size() && text[at] == '"';
  at += quoted ? 1 : 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[at] == separator || is_end_of_line(text[at]))) {
      break;
    }
  }
  return at;
}

// Returns the name of a column as one word, or as it is if it is none.
std::string column_name(std::string_view field) {
  std::string name = unquoted(field);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::string_view(" /()[]%#").find(c) != std::string_view::npos; }, '_');
  return name;
}

bool is_word(const std::string& name) { return end_of_word(name, 0) == name.size(); }

// Returns the names of the columns if all fields of the line are words, otherwise none.
std::vector<std::string> columns_of(std::string_view line, char separator) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    const std::size_t end = end_of_field(line, at, separator);
    names.push_back(column_name(line.substr(at, end - at)));
    if (!is_word(names.back())) {
      return {};
    }
    at = end;
  }
  return names;
}

bool has_secret(const std::vector<std::string>& names) {
  return names.size() > 1 && std::any_of(names.begin(), names.end(), is_secret_name);
}

// Returns whether the value of a column is replaced.
bool is_secret_field(const std::string& name, std::string_view field) {
  const std::string value = unquoted(field);
  return is_secret_name(name) && value != kRedacted && !is_harmless_value(name, value);
}

// Returns the first `most` fields and one more of a line of aligned columns, between which there
// are so many blanks.
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

// Returns the first `most` fields and one more of a line between separators, without the blanks
// around them. line.end becomes the end of a quoted field's line.
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

// Finds tables anywhere in a text, also aligned ones and those with bars, and replaces the fields
// of their secret columns. A table ends at the first line with another number of fields.
class TableScan {
 public:
  explicit TableScan(std::string_view text) : text_(text) {}

  Redacted run() {
    while (at_ < text_.size()) {
      const TableField line = line_at(at_);
      const bool found = find_header(line);
      copy_to(next_line(line.end));
      while (found && row()) {
      }
    }
    return std::move(result_);
  }

 private:
  TableField line_at(std::size_t at) const {
    return {at, std::min(text_.find_first_of("\r\n", at), text_.size())};
  }
  std::size_t next_line(std::size_t end) const {
    end += text_.substr(end).starts_with("\r\n") ? 1 : 0;
    return std::min(end + 1, text_.size());
  }
  void copy_to(std::size_t end) {
    result_.text += text_.substr(at_, end - at_);
    at_ = end;
  }

  std::vector<TableField> fields_of(TableField& line) const {
    const std::size_t most = names_.size();
    if (separator_ != kAligned) {
      return separated_fields(text_, line, separator_, most);
    }
    std::vector<TableField> fields = aligned_fields(text_, line, 2, most);
    return fields.size() == most || most == 2 ? fields : aligned_fields(text_, line, 1, most);
  }

  // Returns whether the line names the columns of a table, some of which are secret, and a row
  // follows it.
  bool find_header(const TableField& line) {
    if (line.end - line.begin > kLongestHeader) {
      return false;
    }
    const std::string_view words = text_.substr(line.begin, line.end - line.begin);
    const std::size_t first = words.find_first_of(",;\t|");
    for (const char separator :
         {first == std::string_view::npos ? kAligned : words[first], kAligned}) {
      TableField whole = line;
      separator_ = separator;
      if (take_names(separator == kAligned
                         ? aligned_fields(text_, line, 2, kLongestHeader)
                         : separated_fields(text_, whole, separator, kLongestHeader)) &&
          whole.end == line.end) {
        TableField next = line_at(next_line(line.end));
        next = is_ruler(next) ? line_at(next_line(next.end)) : next;
        return next.begin < next.end && fields_of(next).size() == names_.size();
      }
    }
    return false;
  }

  // In a sentence, too, there are commas between words, so that names of several words need others
  // between the columns. Lists of options are no tables.
  bool take_names(const std::vector<TableField>& fields) {
    names_.clear();
    std::size_t named = 0;
    for (const TableField& field : fields) {
      const std::string_view own = text_.substr(field.begin, field.end - field.begin);
      const bool list = separator_ == ',' || separator_ == ';';
      const bool several = own.find(' ') != std::string_view::npos && own[0] != '"';
      const bool spaced = list && field.begin > 0 && text_[field.begin - 1] == ' ';
      spaced_ = (names_.empty() ? false : spaced_) || spaced;
      several_ = (names_.empty() ? false : several_) || several;
      names_.push_back(column_name(own));
      named += own.empty() ? 0 : 1;
      const std::ptrdiff_t most_blanks = separator_ == kAligned ? 1 : 2;
      if (!is_word(names_.back()) || own.starts_with('-') ||
          std::count(own.begin(), own.end(), ' ') > most_blanks ||
          std::count(own.begin(), own.end(), '(') != std::count(own.begin(), own.end(), ')')) {
        return false;
      }
    }
    return named > 1 && has_secret(names_) && !(spaced_ && several_);
  }

  // Returns whether the line only separates the header from the rows.
  bool is_ruler(const TableField& line) const {
    const std::string_view own = text_.substr(line.begin, line.end - line.begin);
    return own.find('-') != std::string_view::npos &&
           own.find_first_not_of("-+|=: \t") == std::string_view::npos;
  }

  // Copies the row at this place without its secrets. Returns false if there is none.
  bool row() {
    TableField line = line_at(at_);
    if (line.begin == line.end) {
      return false;
    }
    if (!is_ruler(line)) {
      const std::vector<TableField> fields = fields_of(line);
      if (fields.size() != names_.size()) {
        return false;
      }
      for (std::size_t column = 0; column < fields.size(); ++column) {
        replace(fields[column], names_[column]);
      }
    }
    copy_to(next_line(line.end));
    return true;
  }

  void replace(const TableField& field, const std::string& name) {
    const std::string_view own = text_.substr(field.begin, field.end - field.begin);
    if (!is_secret_field(name, own)) {
      return;
    }
    const bool quoted = own.size() > 1 && own.front() == '"' && own.back() == '"';
    copy_to(field.begin + (quoted ? 1 : 0));
    result_.text += kRedacted;
    ++result_.secrets;
    at_ = field.end - (quoted ? 1 : 0);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  char separator_ = ',';
  bool spaced_ = false;   // whether there is a blank before a name
  bool several_ = false;  // whether a name has several words
  std::vector<std::string> names_;
  Redacted result_;
};

// Replaces the fields of secret columns in a text whose first line is the header of a table.
// `header` is its end.
Redacted redact_table(std::string_view text, std::size_t header, char separator,
                      const std::vector<std::string>& names) {
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
    if (column < names.size() && is_secret_field(names[column], text.substr(at, end - at))) {
      result.text += kRedacted;
      ++result.secrets;
    } else {
      result.text += text.substr(at, end - at);
    }
    at = end;
  }
  return result;
}

bool is_json(std::string_view text) {
  std::size_t examined = 0;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || (text[begin] != '[' && text[begin] != '{')) {
    return false;
  }
  const auto end = end_of_json(text, begin, examined);
  return text[begin] == '{' ||
         (end && text.find_first_not_of(" \t\r\n", *end) == std::string_view::npos);
}

}  // namespace

Redacted redact_columns(std::string_view text) {
  const std::size_t begin = text.starts_with("\ufeff") ? 3 : 0;
  const std::size_t header = std::min(text.find_first_of("\r\n", begin), text.size());
  const std::string_view line = text.substr(begin, header - begin);
  const std::size_t first = line.find_first_of(",;\t");
  const char separator = first == std::string_view::npos ? ',' : line[first];
  if (const std::vector<std::string> names = columns_of(line, separator); has_secret(names)) {
    return redact_table(text, header, separator, names);
  }
  return is_json(text) ? Redacted{std::string(text), 0} : TableScan(text).run();
}

}  // namespace trireme
