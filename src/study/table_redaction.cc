#include "src/study/table_redaction.h"

#include <algorithm>
#include <vector>

#include "src/study/assigned_text.h"
#include "src/study/json_redaction.h"
#include "src/study/pair_redaction.h"
#include "src/study/secret_names.h"
#include "src/study/table_fields.h"
#include "src/study/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestHeader = 4096;  // bytes of a header below the first line
constexpr char kAligned = ' ';                // separator of columns with two blanks between them

// Returns the names of the columns if all fields of the line are words, otherwise none.
std::vector<std::string> columns_of(std::string_view line, char separator) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= line.size(); ++at) {
    const std::size_t end = end_of_field(line, at, separator);
    names.push_back(column_name(line.substr(at, end - at)));
    if (!is_column_word(names.back())) {
      return {};
    }
    at = end;
  }
  return names;
}

// A line with a value that was replaced before is no header: otherwise a second search would find
// more than the first one.
bool has_secret(const std::vector<std::string>& names) {
  return names.size() > 1 && std::any_of(names.begin(), names.end(), is_secret_name) &&
         std::find(names.begin(), names.end(), kRedacted) == names.end();
}

// Returns whether the value of a column is replaced.
bool is_secret_field(const std::string& name, std::string_view field) {
  const std::string value = unquoted(field);
  return is_secret_name(name) && value != kRedacted && !is_harmless_value(name, value);
}

// Returns the name in a field if it is that of a secret, or "".
std::string secret_column(std::string_view field) {
  const std::string name = column_name(field);
  return is_column_word(name) && is_secret_name(name) ? name : "";
}

// Finds tables anywhere in a text, also aligned ones and those with bars, and replaces the fields
// of their secret columns. A table ends at the first line with another number of fields.
class TableScan {
 public:
  explicit TableScan(std::string_view text) : text_(text) {}

  Redacted run() {
    while (at_ < text_.size()) {
      const TableField line = table_line(text_, at_);
      const bool found = find_header(line);
      copy_to(behind_line(text_, line.end));
      while (found && row()) {
      }
    }
    return std::move(result_);
  }

 private:
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
        TableField next = table_line(text_, behind_line(text_, line.end));
        next = is_ruler(text_.substr(next.begin, next.end - next.begin))
                   ? table_line(text_, behind_line(text_, next.end))
                   : next;
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
      if (!is_column_word(names_.back()) || own.starts_with('-') ||
          std::count(own.begin(), own.end(), ' ') > most_blanks ||
          std::count(own.begin(), own.end(), '(') != std::count(own.begin(), own.end(), ')')) {
        return false;
      }
    }
    return named > 1 && has_secret(names_) && !(spaced_ && several_);
  }

  // Copies the row at this place without its secrets. Returns false if there is none.
  bool row() {
    TableField line = table_line(text_, at_);
    if (line.begin == line.end) {
      return false;
    }
    if (!is_ruler(text_.substr(line.begin, line.end - line.begin))) {
      const std::vector<TableField> fields = fields_of(line);
      if (fields.size() != names_.size()) {
        return false;
      }
      const std::string own = own_name(fields);
      for (std::size_t column = 0; column < fields.size(); ++column) {
        const bool pair = !own.empty() && !is_secret_name(names_[column]);
        replace(fields[column], pair ? own : names_[column]);
      }
    }
    copy_to(behind_line(text_, line.end));
    return true;
  }

  // Returns the first field if it is a secret's name itself, as in a list of names and values.
  std::string own_name(const std::vector<TableField>& fields) const {
    const auto first = std::find_if(fields.begin(), fields.end(), [](const TableField& field) {
      return field.end > field.begin;
    });
    return first == fields.end()
               ? ""
               : secret_column(text_.substr(first->begin, first->end - first->begin));
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
  std::string own;  // that of a row in a list of names and values
  for (std::size_t at = header; at < text.size();) {
    if (const char c = text[at]; c == '\r' || c == '\n' || c == separator) {
      column = c == separator ? column + 1 : 0;
      own = c == separator ? own : "";
      result.text += c;
      ++at;
      continue;
    }
    const std::size_t end = end_of_field(text, at, separator);
    const std::string_view field = text.substr(at, end - at);
    const bool named = column < names.size() && is_secret_field(names[column], field);
    if (named || (!own.empty() && is_secret_field(own, field))) {
      result.text += kRedacted;
      ++result.secrets;
    } else {
      result.text += field;
    }
    own = column == 0 ? secret_column(field) : own;
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
  if (text[begin] == '{') {
    return true;
  }
  const auto end = end_of_json(text, begin, examined);
  return end && text.find_first_not_of(" \t\r\n", *end) == std::string_view::npos;
}

}  // namespace

Redacted redact_columns(std::string_view text) {
  if (is_json(text)) {
    return {std::string(text), 0};
  }
  const std::size_t begin = text.starts_with("\ufeff") ? 3 : 0;
  const std::size_t header = std::min(text.find_first_of("\r\n", begin), text.size());
  const std::string_view line = text.substr(begin, header - begin);
  const std::size_t first = line.find_first_of(",;\t");
  const char separator = first == std::string_view::npos ? ',' : line[first];
  const std::vector<std::string> names = columns_of(line, separator);
  const Redacted columns =
      has_secret(names) ? redact_table(text, header, separator, names) : TableScan(text).run();
  Redacted all = redact_pairs(columns.text);
  all.secrets += columns.secrets;
  return all;
}

}  // namespace trireme
