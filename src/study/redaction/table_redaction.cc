#include "src/study/redaction/table_redaction.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/json_redaction.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/secret_sentences.h"
#include "src/study/redaction/table_columns.h"
#include "src/study/redaction/table_fields.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

bool has_quotes(std::string_view field) {
  return field.size() > 1 && (field.front() == '"' || field.front() == '\'') &&
         field.front() == field.back();
}

// Returns whether the value of a column or a pair is replaced. In a column that may tell of counts,
// several words are rather a remark.
bool is_secret_field(const std::string& name, std::string_view value) {
  constexpr std::ptrdiff_t kMostBlanks = 1;
  const bool remark =
      counts_something(name) && std::count(value.begin(), value.end(), ' ') > kMostBlanks;
  return is_secret_name(name) && !remark && value != kRedacted && !is_harmless_value(name, value) &&
         (!counts_something(name) || looks_secret(value));
}

// Finds tables and lines of a name and its value anywhere in a text, and copies it without the
// secrets in them. Lines between the rows of a table end it only if they are many.
class TableScan {
 public:
  explicit TableScan(std::string_view text) : text_(text) {}

  Redacted run() {
    copy_to(text_.starts_with("\ufeff") ? 3 : 0);
    while (at_ < text_.size()) {
      TableField line = table_line(text_, at_);
      const TableField own = line;
      if (skip_json()) {
        odd_line();
      } else {
        search(line);
        copy_to(behind_line(text_, line.end));
      }
      above_ = own;
    }
    return std::move(result_);
  }

 private:
  void copy_to(std::size_t end) {
    result_.text += text_.substr(at_, end - at_);
    at_ = end;
  }

  // Copies the lines of a value of JSON that begins this line. Where many begin that end nowhere,
  // the rest is taken for plain text.
  bool skip_json() {
    const std::size_t begin = std::min(text_.find_first_not_of(" \t", at_), text_.size());
    if (begin == text_.size() || (text_[begin] != '{' && text_[begin] != '[') ||
        examined_ > 4 * text_.size() + kLongestHeader) {
      return false;
    }
    const auto end = end_of_json(text_, begin, examined_);
    if (end) {
      copy_to(behind_line(text_, table_line(text_, *end).end));
    }
    return end.has_value();
  }

  std::string_view of(const TableField& field) const {
    return text_.substr(field.begin, field.end - field.begin);
  }

  // Replaces the secrets of a line, which is a row, a header, or any other line. Directly behind
  // other rows, what looks like a header is rather one more row.
  void search(TableField& line) {
    if (columns_ && odd_lines_ == 0 && row(line)) {
      return;
    }
    auto header = TableColumns::of_header(text_, line, above_);
    if (header && !header->has_plain_names() && columns_ && row(line)) {
      return;
    }
    if (header) {
      columns_ = std::move(header);
      odd_lines_ = 0;
      pair(line);
    } else if (!columns_ || !row(line)) {
      if (columns_ && (is_above_ruler(line) || columns_->is_other_header(text_, line))) {
        columns_.reset();
      }
      odd_line();
      pair(line);
    }
  }

  // Ends the current table behind too many lines that are no rows.
  void odd_line() {
    if (++odd_lines_ > kMostOddLines) {
      columns_.reset();
    }
  }

  // Replaces the secrets of a row of the current table. Returns false if the line is none.
  bool row(TableField& line) {
    if (line.begin < line.end && is_ruler(of(line))) {
      return true;
    }
    if (line.begin == line.end || (odd_lines_ > 0 && is_above_ruler(line))) {
      return false;
    }
    TableField whole = line;
    const std::vector<TableCell> cells = columns_->row(text_, whole, odd_lines_ > 0);
    if (cells.empty()) {
      return false;
    }
    odd_lines_ = 0;
    if (!pair(line)) {
      for (const TableCell& cell : cells) {
        replace(cell.field, columns_->name(cell.column));
      }
      line = whole;
    }
    return true;
  }

  // Returns whether a line is the header of a table in Markdown.
  bool is_above_ruler(const TableField& line) const {
    const std::string_view next = of(table_line(text_, behind_line(text_, line.end)));
    return next.starts_with('|') && is_ruler(next);
  }

  // Replaces the value in a line of a secret's name and its value. Returns whether it is one. The
  // line ends behind a value in quotes.
  bool pair(TableField& line) {
    constexpr std::size_t kMostFields = 4;  // with empty ones around bars
    for (const char separator : table_separators(text_, line)) {
      TableField whole = line;
      std::vector<TableField> fields = separator == kAlignedColumns
                                           ? aligned_fields(text_, line, 2, kMostFields)
                                           : separated_fields(text_, whole, separator, kMostFields);
      std::erase_if(fields, [](const TableField& field) { return field.begin == field.end; });
      if (fields.size() == 2 && is_pair_of(fields, separator)) {
        line = whole;
        return replace(fields[1], column_name(of(fields[0])));
      }
    }
    return false;
  }

  // Returns whether the first of two fields names a secret. A comma with a blank behind it is that
  // of a sentence.
  bool is_pair_of(const std::vector<TableField>& fields, char separator) const {
    const std::string_view own = of(fields[0]);
    const std::string name = column_name(own);
    const bool list = is_list_sign(separator);
    const bool quoted = has_quotes(own);
    const auto blanks = std::count(own.begin(), own.end(), ' ');
    return is_column_word(name) && is_secret_name(name) && !own.starts_with('-') &&
           fields[1].end - fields[0].begin < kLongestHeader &&
           blanks <= (quoted || separator == '|' ? 2
                      : list                     ? 0
                                                 : 1) &&
           !(list && text_[fields[1].begin - 1] == ' ') &&
           (list || assignment_at(text_, fields[1].begin) == 0);
  }

  // Replaces a field if its name makes it a secret. Returns whether it does.
  bool replace(const TableField& field, const std::string& name) {
    std::string_view own = of(field);
    const bool quoted = has_quotes(own);
    own = quoted ? own.substr(1, own.size() - 2) : own;
    if (!is_secret_field(name, own)) {
      return false;
    }
    copy_to(field.begin + (quoted ? 1 : 0));
    result_.text += kRedacted;
    ++result_.secrets;
    at_ = field.end - (quoted ? 1 : 0);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t examined_ = 0;             // bytes that might have been JSON
  TableField above_;                     // the line before
  std::optional<TableColumns> columns_;  // those of the current table
  int odd_lines_ = 0;                    // since its last row
  Redacted result_;
};

}  // namespace

Redacted redact_columns(std::string_view text) { return TableScan(text).run(); }

}  // namespace trireme
