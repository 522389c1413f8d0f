#include "src/study/redaction/table_redaction.h"

#include <algorithm>
#include <array>
#include <vector>

#include "src/study/redaction/assigned_text.h"
#include "src/study/redaction/json_redaction.h"
#include "src/study/redaction/secret_names.h"
#include "src/study/redaction/secret_sentences.h"
#include "src/study/redaction/table_fields.h"
#include "src/study/redaction/value_text.h"

namespace trireme {
namespace {

constexpr std::size_t kLongestHeader = 4096;  // bytes of a header, and of a pair
constexpr char kAligned = ' ';                // separator of columns with two blanks between them

bool is_list_sign(char separator) { return separator == ',' || separator == ';'; }

bool has_quotes(std::string_view field) {
  return field.size() > 1 && (field.front() == '"' || field.front() == '\'') &&
         field.front() == field.back();
}

// A line with a value that was replaced before is no header: otherwise a second search would find
// more than the first one.
bool has_secret(const std::vector<std::string>& names) {
  return names.size() > 1 && std::any_of(names.begin(), names.end(), is_secret_name) &&
         std::find(names.begin(), names.end(), kRedacted) == names.end();
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
// secrets in them. A table ends at the first line with another number of fields.
class TableScan {
 public:
  explicit TableScan(std::string_view text) : text_(text) {}

  Redacted run() {
    copy_to(text_.starts_with("\ufeff") ? 3 : 0);
    while (at_ < text_.size()) {
      if (skip_json()) {
        continue;
      }
      TableField line = table_line(text_, at_);
      const bool table = find_header(line);
      pair(line);
      copy_to(behind_line(text_, line.end));
      while (table && row()) {
      }
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

  // Returns the two separators that a line may have: the first sign, and blanks.
  std::array<char, 2> separators(const TableField& line) const {
    const std::size_t first = of(line).find_first_of(",;\t|");
    return {first == std::string_view::npos ? kAligned : of(line)[first], kAligned};
  }

  std::vector<TableField> fields_of(TableField& line, char separator, std::size_t most) const {
    if (separator != kAligned) {
      return separated_fields(text_, line, separator, most);
    }
    std::vector<TableField> fields = aligned_fields(text_, line, 2, most);
    return fields.size() == most || most == 2 ? fields : aligned_fields(text_, line, 1, most);
  }

  // Returns whether the line names the columns of a table, some of which are secret, and a row
  // follows it.
  bool find_header(const TableField& line) {
    for (const char separator : separators(line)) {
      if (line.end - line.begin > kLongestHeader) {
        return false;
      }
      TableField whole = line;
      separator_ = separator;
      if (!take_names(separator == kAligned
                          ? aligned_fields(text_, line, 2, kLongestHeader)
                          : separated_fields(text_, whole, separator, kLongestHeader)) ||
          whole.end != line.end) {
        continue;
      }
      TableField next = table_line(text_, behind_line(text_, line.end));
      next = is_ruler(of(next)) ? table_line(text_, behind_line(text_, next.end)) : next;
      return next.begin < next.end &&
             fields_of(next, separator, names_.size()).size() == names_.size();
    }
    return false;
  }

  // In a sentence, too, there are commas between words, so that names of several words need others
  // between the columns. Lists of options are no tables. Two columns with blanks or a tab between
  // them, the first of which is secret, are rather lines of names and values.
  bool take_names(const std::vector<TableField>& fields) {
    names_.clear();
    std::size_t named = 0;
    bool spaced = false;
    bool several = false;
    for (const TableField& field : fields) {
      const std::string_view own = of(field);
      several = several || (own.find(' ') != std::string_view::npos && own[0] != '"');
      spaced =
          spaced || (is_list_sign(separator_) && field.begin > 0 && text_[field.begin - 1] == ' ');
      names_.push_back(column_name(own));
      named += own.empty() ? 0 : 1;
      const std::ptrdiff_t most_blanks = separator_ == kAligned ? 1 : 2;
      if (!is_column_word(names_.back()) || own.starts_with('-') ||
          std::count(own.begin(), own.end(), ' ') > most_blanks ||
          std::count(own.begin(), own.end(), '(') != std::count(own.begin(), own.end(), ')')) {
        return false;
      }
    }
    const bool pairs = (separator_ == kAligned || separator_ == '\t') && names_.size() == 2 &&
                       is_secret_name(names_[0]);
    return named > 1 && !pairs && has_secret(names_) && !(spaced && several);
  }

  // Copies the row at this place without its secrets. Returns false if there is none.
  bool row() {
    TableField line = table_line(text_, at_);
    if (line.begin == line.end || skip_json()) {
      return false;
    }
    if (!is_ruler(of(line))) {
      const std::vector<TableField> fields = fields_of(line, separator_, names_.size());
      if (fields.size() != names_.size()) {
        return false;
      }
      if (!pair(line)) {
        for (std::size_t column = 0; column < fields.size(); ++column) {
          replace(fields[column], names_[column]);
        }
      }
    }
    copy_to(behind_line(text_, line.end));
    return true;
  }

  // Replaces the value in a line of a secret's name and its value. Returns whether it is one. The
  // line ends behind a value in quotes.
  bool pair(TableField& line) {
    constexpr std::size_t kMostFields = 4;  // with empty ones around bars
    for (const char separator : separators(line)) {
      TableField whole = line;
      std::vector<TableField> fields = separator == kAligned
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
  std::size_t examined_ = 0;  // bytes that might have been JSON
  char separator_ = ',';
  std::vector<std::string> names_;
  Redacted result_;
};

}  // namespace

Redacted redact_columns(std::string_view text) { return TableScan(text).run(); }

}  // namespace trireme
